"""Intervals of shares, and the order of targets by what was measured."""

import math

import pytest

from dragoman.routing.reliability import HALF_LIFE, WINDOW, Rating, by_reliability, decayed, wilson


@pytest.mark.parametrize(
    ("good", "total", "low", "high"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_have_the_published_values(good: int, total: int, low: float, high: float) -> None:
    found = wilson(good, total)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@pytest.mark.parametrize("total", [1, 3, 50, 1000, 0.25])
def test_the_limits_of_nothing_and_of_all_are_exact(total: float) -> None:
    assert wilson(0, total).low == 0.0
    assert wilson(total, total).high == 1.0
    assert wilson(0, total).high == pytest.approx(1 - wilson(total, total).low)


@pytest.mark.parametrize("total", range(1, 60, 7))
def test_the_share_is_inside_and_the_interval_solves_its_equation(total: int) -> None:
    for good in range(total + 1):
        for limit in wilson(good, total):
            # A limit is where the share is as far away as 1.96 standard errors of that limit.
            distance = abs(good / total - limit)
            assert distance == pytest.approx(
                1.959963984540054 * math.sqrt(limit * (1 - limit) / total), abs=1e-9
            )


def test_an_answer_counts_half_after_the_half_life_and_not_at_all_after_the_window() -> None:
    today = 20_000
    rating = decayed(
        [(today, 8, 10), (today - HALF_LIFE, 6, 20), (today - WINDOW, 16, 16), (today - WINDOW - 1, 99, 99)],
        today,
    )
    assert rating == Rating(8 + 3 + 1, 10 + 10 + 1)
    assert decayed([(today + 3, 1, 2)], today) == Rating(1, 2)  # a clock that was wrong


def order(**ratings: tuple[float, float]) -> str:
    """The order of targets, named by single letters and configured in the order of the arguments."""
    found = by_reliability(list(ratings), list(ratings), {name: Rating(*of) for name, of in ratings.items()})
    return "".join(name for name, _ in found)


def test_only_certainty_moves_a_target() -> None:
    assert order(a=(60, 100), b=(190, 200)) == "ba"
    assert order(a=(93, 100), b=(97, 100)) == "ab"
    assert order(a=(10, 100), b=(50, 100), c=(95, 100)) == "cba"
    # c is certainly better than a. Nothing is certain about b, which stays before c.
    assert order(a=(70, 100), b=(80, 100), c=(88, 100)) == "bca"


def test_a_target_with_few_answers_keeps_its_place() -> None:
    assert order(a=(10, 100), b=(1, 1), c=(100, 100)) == "cba"
    assert order(a=(49, 49), b=(100, 100)) == "ab"
    assert order(a=(0, 49), b=(100, 100)) == "ab"
