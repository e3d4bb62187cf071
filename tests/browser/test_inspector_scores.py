"""The scores page: shares with their intervals, and the numbers behind them."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser.asking import config
from browser.test_inspector_looks import PAINTED, contrast
from playwright.sync_api import expect
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream

from dragoman.store import Receipt, ScoreCount

DAY = 86_400


def counts(upstream: str, model: str, **kinds: dict[str, int]) -> tuple[ScoreCount, ...]:
    return tuple(
        ScoreCount(upstream, model, kind, name.replace("_", "-") if kind == "rule" else name, number)
        for kind, of in kinds.items()
        for name, number in of.items()
    )


@pytest.fixture
def scored(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    """A gateway whose store has the scores of three targets."""
    made = [
        Receipt(
            f"r{number}",
            time.time() - days * DAY,
            scores=scores,
            summary=b'{"id":"r","at":1,"client":"c","profile":null,"model":"m","target":null,'
            b'"upstream_protocol":null}',
        )
        for number, (days, scores) in enumerate(
            [
                (
                    1,
                    counts(
                        "anthropic", "claude-opus-4-5",
                        answer={"ok": 400, "overloaded": 3}, quality={"good": 399, "poor": 4},
                        call={"valid": 880, "mended": 4}, rule={"tool_alias": 4},
                        first_event={"1": 200, "1.5": 150, "5": 50},
                    ),
                ),
                (
                    2,
                    counts(
                        "openrouter", "qwen/qwen3-coder-480b-a35b-instruct",
                        answer={"ok": 110, "upstream": 9, "rate_limit": 31}, quality={"good": 90, "poor": 60},
                        call={"valid": 140, "mended": 61, "leaked": 22, "invalid": 9, "cut": 9, "ghost": 4},
                        rule={"tool_alias": 40, "quotes": 21, "call_in_text": 22}, reask={"asked": 7},
                        first_event={"2": 60, "3": 40, "later": 10},
                    ),
                ),
                (20, counts("local", "tiny", answer={"ok": 4}, quality={"good": 4}, call={"valid": 4})),
            ]
        )
    ]  # fmt: skip
    with gateway(config(upstream), loop) as running:
        running.state.store.add_receipts(lambda: made).result()
        yield running


def row(page: Any, target: str) -> Any:
    return page.locator(".whiskers tbody tr").filter(has_text=target)


def test_shares_have_their_intervals(visit: Callable[..., Any], scored: Gateway) -> None:
    page = visit(scored, "#scores")
    expect(page.get_by_role("heading", name="Scores")).to_be_visible()
    expect(page.locator(".whiskers tbody tr")).to_have_count(3)
    opus = row(page, "claude-opus")
    expect(opus.locator(".share")).to_have_text(re.compile(r"99\.0\s%"))
    expect(opus.locator(".of")).to_have_text("403")
    qwen = row(page, "qwen3-coder")
    expect(qwen.locator("td.interval")).to_have_text(re.compile(r"52\.0\s% \u2013 67\.5\s%"))
    # The whisker is drawn where the interval says.
    drawn = qwen.locator("svg line.interval").first
    low, high = (float(drawn.get_attribute(name).rstrip("%")) for name in ("x1", "x2"))
    assert (low, high) == pytest.approx((52.0049, 67.4957), abs=0.01)
    few = row(page, "tiny").locator("svg line.interval").first
    assert float(few.get_attribute("x2").rstrip("%")) - float(few.get_attribute("x1").rstrip("%")) > 40


def test_another_measure_and_range(visit: Callable[..., Any], scored: Gateway) -> None:
    page = visit(scored, "#scores")
    page.get_by_role("button", name="leaked", exact=True).click()
    expect(row(page, "qwen3-coder").locator(".share")).to_have_text(re.compile(r"9\.0\s%"))
    page.get_by_role("button", name="7 days").click()
    expect(page.locator(".whiskers tbody tr")).to_have_count(2)
    assert page.evaluate("location.hash") == "#scores?range=7d&measure=leaked"
    page.reload()
    expect(page.get_by_role("button", name="leaked", exact=True)).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(page.locator(".whiskers tbody tr")).to_have_count(3)


def test_the_numbers_behind_the_plot(visit: Callable[..., Any], scored: Gateway) -> None:
    page = visit(scored, "#scores")
    calls = page.get_by_role("table", name="How tool calls came").locator("tbody tr").nth(1)
    expect(calls.locator("td").first).to_have_text("245")
    expect(calls.locator("td").nth(2)).to_contain_text("61")
    more = page.get_by_role("table", name="Failures, rules and times").locator("tbody tr").nth(1)
    expect(more).to_contain_text("rate_limit 31, upstream 9")
    expect(more).to_contain_text("tool-alias 40, call-in-text 22, quotes 21")
    expect(more).to_contain_text("half 2 s, 9 of 10 3 s")


def test_the_keyboard_and_the_links_lead_there_and_back(visit: Callable[..., Any], scored: Gateway) -> None:
    page = visit(scored)
    page.keyboard.press("r")
    expect(page.get_by_role("heading", name="Scores")).to_be_visible()
    expect(page.get_by_role("link", name="Scores")).to_have_attribute("aria-current", "page")
    page.keyboard.press("u")
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    expect(page.get_by_role("heading", name="Scores")).to_be_hidden()
    page.get_by_role("link", name="Scores").click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_visible()


def test_nothing_counted_yet(visit: Callable[..., Any], served: Gateway) -> None:
    page = visit(served, "#scores")
    expect(page.get_by_role("heading", name="No answers in the last 30 days")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_it_can_be_read_at_any_width_in_light_and_dark(
    scheme: str, width: int, visit: Callable[..., Any], scored: Gateway
) -> None:
    page = visit(scored, "#scores", viewport={"width": width, "height": 800}, color_scheme=scheme)
    expect(page.locator(".whiskers tbody tr")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    pane = "document.querySelector('#scores')"
    assert page.evaluate(f"{pane}.scrollWidth - {pane}.clientWidth") <= 0
    assert page.locator(".whiskers .drawn svg").nth(1).bounding_box()["width"] > 80
    poor = [(text, round(contrast(a, b), 1)) for text, a, b in page.evaluate(PAINTED) if contrast(a, b) < 4.5]
    assert poor == []
