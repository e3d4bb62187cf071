"""What the lists say about themselves: order, dates, counts under a filter, and what to do while empty."""

import json
import time
from collections.abc import Callable
from typing import Any

from browser.asking import BASH, WRITE, ask, asked, chunk, config
from playwright.sync_api import expect
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream

from dragoman.store import Receipt

DAY = 86_400
MOMENT = "async (at) => (await import('./inspector/format.js')).moment(at)"


def kept(n: int, at: float, seconds: float, cost: float | None, session: str) -> Receipt:
    shown = {
        "id": f"{n:016x}", "at": at, "client": "anthropic", "profile": None, "model": f"model-{n}",
        "target": None, "upstream_protocol": None, "outcome": "ok", "status": 200,
        "seconds": seconds, "cost": cost,
        "usage": {"input": n, "output": 1, "cached_input": 0, "reasoning": 0},
    }  # fmt: skip
    return Receipt(
        f"{n:016x}", at, model=f"model-{n}", seconds=seconds, session=session, opening=f"Task of {session}",
        micros=None if cost is None else round(cost * 1e6), input=n, output=1, words=f"model-{n}",
        summary=json.dumps(shown).encode(),
    )  # fmt: skip


def names(page: Any, of: str = "#list") -> list[str]:
    """The rows' texts in the order on the page."""
    rows = page.locator(f"{of} .row").all()
    by_place = sorted(rows, key=lambda row: int(row.get_attribute("aria-posinset")))
    return [row.locator(".model").inner_text() for row in by_place]


def test_sorting_and_dates(visit: Callable[..., Any], loop: Loop, upstream: ScriptedUpstream) -> None:
    now = time.time()
    made = [
        kept(1, now - 1, 3.0, None, "a" * 16),
        kept(2, now - 3 * DAY, 9.0, 0.5, "b" * 16),
        kept(3, now - 4 * DAY, 1.0, 2.0, "b" * 16),
    ]
    with gateway(config(upstream), loop) as running:
        running.state.store.add_receipts(lambda: made).result()
        page = visit(running)
        expect(page.locator("#list .row")).to_have_count(3)
        assert names(page) == ["model-1", "model-2", "model-3"]
        times = [page.locator(f"#row-{n:016x} .when").inner_text().strip() for n in (1, 2, 3)]
        then = [time.localtime(one.at) for one in made]
        assert times[1:] == [page.evaluate(MOMENT, one.at) for one in made[1:]]
        assert times[0] == time.strftime("%H:%M:%S", then[0])
        assert times[1] == time.strftime(
            "%m-%d %H:%M" if then[1].tm_year == then[0].tm_year else "%Y-%m-%d", then[1]
        )
        assert page.evaluate(MOMENT, now - 400 * DAY) == time.strftime(
            "%Y-%m-%d", time.localtime(now - 400 * DAY)
        )
        order = page.get_by_role("group", name="Order").first
        order.get_by_role("button", name="took").click()
        expect(page.locator("#foot")).to_contain_text("3 exchanges · sorted by took")
        expect(order.get_by_role("button", name="took")).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#list .row[aria-posinset='1'] .model")).to_have_text("model-2")
        assert names(page) == ["model-2", "model-1", "model-3"]
        for by, expected in {
            "tokens": ["3", "2", "1"],
            "cost": ["3", "2", "1"],
            "time": ["1", "2", "3"],
        }.items():
            page.keyboard.press("o")
            expect(order.get_by_role("button", name=by)).to_have_attribute("aria-pressed", "true")
            expect(page.locator("#list .row[aria-posinset='1'] .model")).to_have_text(f"model-{expected[0]}")
            assert names(page) == [f"model-{n}" for n in expected]
        page.keyboard.press("s")
        expect(page.locator(".sessions .row")).to_have_count(2)
        page.keyboard.press("o")
        expect(page.locator(".sessions .row[aria-posinset='1'] .took")).to_have_text("2 turns")
        expect(page.locator(".sessions .foot")).to_have_text("2 sessions · sorted by turns")
        page.close()


def test_a_filter_says_of_how_many(visit: Callable[..., Any], served: Gateway) -> None:
    for model in ("one", "two", "three"):
        asked(served, model)
    page = visit(served)
    expect(page.locator("#foot")).to_contain_text("3 exchanges")
    page.get_by_role("searchbox").fill("model:t*")
    expect(page.locator("#foot")).to_contain_text("2 of 3 exchanges")
    asked(served, "four")
    asked(served, "ten")
    expect(page.locator("#foot")).to_contain_text("3 of 5 exchanges")


def test_the_empty_list_names_the_port_and_the_machine(visit: Callable[..., Any], served: Gateway) -> None:
    page = visit(served)
    port = served.url.rpartition(":")[2]
    lines = page.locator("#empty pre").inner_text().splitlines()
    assert lines[:3] == [f"dragoman run --port {port} {agent}" for agent in ("claude", "codex", "gemini")]
    assert lines[-3:] == [
        f"ANTHROPIC_BASE_URL={served.url}", f"OPENAI_BASE_URL={served.url}/v1",
        f"GOOGLE_GEMINI_BASE_URL={served.url}",
    ]  # fmt: skip
    # `dragoman run` would look for the gateway on the wrong machine.
    elsewhere = page.evaluate(
        "(async () => (await import('./inspector/first_steps.js')).firstSteps(new URL('http://box:4545/')))()"
    )
    assert [line.partition("=")[0] for line in elsewhere] == [
        "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL",
    ]  # fmt: skip


def piece(index: int, arguments: str, **more: Any) -> bytes:
    return chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]})


def test_pieces_of_interleaved_calls_have_the_number_of_their_call(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    def begun(index: int, name: str) -> bytes:
        call = {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": name, "arguments": ""},
        }
        return chunk({"role": "assistant", "tool_calls": [call]})

    upstream.script(
        [
            begun(0, "Bash"), begun(1, "Write"),
            piece(0, '{"command": '), piece(1, '{"file_path": "a", '),
            piece(0, '"ls"}'), piece(1, '"content": "b"}'),
            chunk({}, "tool_calls"), b"data: [DONE]\n\n",
        ]
    )  # fmt: skip
    got = ask(served, tools=[BASH, WRITE])
    page = visit(served, f"#{got.headers['x-dragoman-exchange']}/timeline")
    came = page.locator(".from-upstream .part.arguments .kind")
    expect(came).to_have_text(["args 1", "args 2", "args 1", "args 2"])
    went = page.locator(".to-client .part.call")
    expect(went).to_contain_text(["call 1", "call 2"])
    # Steps without content are in the same column as the pieces.
    first = page.locator(".to-client .part.mark .what").first.bounding_box()
    assert first["x"] == went.first.locator(".what").bounding_box()["x"]
