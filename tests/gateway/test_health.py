"""Cooldowns: when a target is skipped, and when it is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.routing.health import Health, Policy, backoff

POLICY = Policy(failures=3, first=5, longest=60, longest_asked=3600, probe=30)


def failing(times: int, *, at: float = 0.0) -> Health:
    health = Health(POLICY)
    for _ in range(times):
        health.failed("t", at)
    return health


def test_a_single_failure_is_forgiven() -> None:
    health = failing(2)
    assert health.state("t", 0) == "well"
    health.succeeded("t")
    health.failed("t", 1)
    assert health.state("t", 1) == "well"


def test_repeated_failures_start_a_cooldown_and_then_one_probe() -> None:
    health = failing(3)
    assert health.state("t", 4.9) == "cooling"
    assert health.cooldown("t", 1).seconds == 4
    assert health.state("t", 5) == "probe"
    health.began("t", 5)
    assert health.state("t", 6) == "cooling"
    health.succeeded("t")
    assert health.state("t", 6) == "well"


def test_each_failed_trial_doubles_the_pause_up_to_a_bound() -> None:
    health = failing(3)
    pauses: list[float] = []
    for _ in range(6):
        now = health.until("t")
        health.began("t", now)
        health.failed("t", now)
        pauses.append(health.until("t") - now)
    assert pauses == [10, 20, 40, 60, 60, 60]


def test_retry_after_starts_a_limited_cooldown_at_once() -> None:
    health = Health(POLICY)
    health.failed("t", 0, retry_after=42)
    assert health.until("t") == 42
    health = Health(POLICY)
    health.failed("t", 0, retry_after=1e9)
    assert health.until("t") == 3600


def test_late_failures_of_earlier_requests_do_not_lengthen_the_pause() -> None:
    health = failing(20)
    assert health.until("t") == 5
    health.failed("t", 1, retry_after=30)
    assert health.until("t") == 31


def test_a_trial_that_never_ends_does_not_block_the_target() -> None:
    health = failing(3)
    health.began("t", 5)
    assert health.state("t", 34) == "cooling"
    assert health.state("t", 35) == "probe"
    health.began("t", 35)
    health.abandoned("t")
    assert health.state("t", 36) == "probe"
    health.abandoned("unknown")


def test_cooling_targets_come_last_and_none_is_dropped() -> None:
    health = Health(POLICY)
    health.failed("a", 0, retry_after=60)
    health.failed("b", 0, retry_after=20)
    assert health.order(["a", "b", "c"], str, 0) == ["c", "b", "a"]
    assert health.order(["a", "b"], str, 0) == ["b", "a"]
    assert health.order(["a", "b", "c"], str, 30) == ["b", "c", "a"]


def test_a_new_config_forgets_old_targets() -> None:
    health = Health(POLICY)
    for key in ("a/x", "b/y", "b/z"):
        health.failed(key, 0, retry_after=9)
    health.keep_only(["a/*", "b/y"])
    assert [*health.failing] == ["a/x", "b/y"]


def test_unknown_model_names_use_limited_memory() -> None:
    health = Health(POLICY)
    for number in range(10_000):
        health.failed(f"t/{number}", 0, retry_after=9)
    assert len(health.failing) == 4096


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["began", "failed", "asked", "succeeded", "abandoned"]),
        st.sampled_from("abc"),
        st.floats(0, 100),
    )
)


@given(STEPS)
def test_every_target_is_eventually_tried_again(steps: list[tuple[str, str, float]]) -> None:
    health, now = Health(POLICY), 0.0
    for step, key, seconds in steps:
        now += seconds
        match step:
            case "began":
                health.began(key, now)
            case "failed":
                health.failed(key, now)
            case "asked":
                health.failed(key, now, seconds)
            case "succeeded":
                health.succeeded(key)
            case _:
                health.abandoned(key)
        assert sorted(health.order("abc", str, now)) == ["a", "b", "c"]
    assert all(health.state(key, now + 3601) != "cooling" for key in "abc")


def test_backoff_doubles_with_jitter_up_to_a_limit() -> None:
    assert [backoff(tries, 1.0) for tries in (1, 2, 3, 9)] == [0.5, 1, 2, 8]
    assert [backoff(tries, 0.0) for tries in (1, 2, 10_000)] == [0.25, 0.5, 4]


def test_processes_tell_each_other_of_cooldowns() -> None:
    one, other = Health(), Health()
    told: list[str] = []
    one.on_change = told.append
    one.failed("up/m", 0.0)
    one.failed("up/m", 0.0)
    assert told == []  # it does not cool down yet
    one.failed("up/m", 0.0)
    one.failed("up/m", 1.0, retry_after=60.0)
    assert told == ["up/m", "up/m"]
    other.adopt("up/m", one.cooldown("up/m", 1.0), 101.0)
    assert other.state("up/m", 160.0) == "cooling"
    assert other.state("up/m", 161.0) == "probe"
    one.began("up/m", 61.0)
    other.adopt("up/m", one.cooldown("up/m", 61.0), 161.0)
    assert other.state("up/m", 162.0) == "cooling"  # the other one probes it
    one.succeeded("up/m")
    other.adopt("up/m", one.cooldown("up/m", 62.0), 162.0)
    assert other.failing == {}
    assert told == ["up/m"] * 4
