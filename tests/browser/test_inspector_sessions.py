"""The sessions page: the list of conversations, and the waterfall of one of them."""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.asking import BASH, MENDED, WRITE, ask, calls, chunk, config
from browser.test_inspector_looks import PAINTED, contrast
from playwright.sync_api import expect
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream, status

from dragoman.store import Receipt

PICTURES = os.environ.get("DRAGOMAN_PICTURES")


def says(cached: int) -> list[bytes]:
    usage = {
        "prompt_tokens": 9000,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return [
        chunk({"role": "assistant", "content": "Done."}),
        chunk({}, "stop", usage=usage),
        b"data: [DONE]\n\n",
    ]


def said(turns: int) -> list[dict[str, Any]]:
    found = [{"role": "user", "content": "Mend the failing test in the parser, please"}]
    for n in range(turns - 1):
        found += [{"role": "assistant", "content": f"Answer {n}"}, {"role": "user", "content": f"Result {n}"}]
    return found


@pytest.fixture
def worked(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    """A gateway with one session of six turns. Name it before `visit`, so that pages close before it."""
    upstream.script(
        says(0),
        calls("Bash", MENDED),
        says(8500),
        says(0),
        says(8800),
        status(500, b'{"error":{"message":"Boom"}}'),
    )
    with gateway(config(upstream), loop) as running:
        for turns in (1, 2, 3):
            ask(running, messages=said(turns))
        for turns in (4, 5, 6):
            ask(running, messages=said(turns), tools=[WRITE, BASH])
        loop.run(running.state.observed.ledger.close())
        yield running


def picture(page: Any, name: str) -> None:
    """Keep what the page looks like, if somebody wants to see it."""
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_from_the_list_to_a_turn_and_to_its_exchange(worked: Gateway, visit: Callable[..., Any]) -> None:
    page = visit(worked, "#sessions")
    row = page.locator(".sessions .row")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Mend the failing test in the parser, please")
    for words in ("claude-code", "6 turns", "1 failed", "1 mended"):
        expect(row).to_contain_text(words)
    picture(page, "sessions-light")
    row.click()
    expect(page.get_by_role("heading", name="Mend the failing test in the parser, please")).to_be_visible()
    turns = page.locator(".turn")
    expect(turns).to_have_count(6)
    expect(turns.nth(0)).to_contain_text("first request of its conversation")
    expect(turns.nth(2).locator(".meter")).to_have_text(re.compile(r"94\s% cached"))
    expect(turns.nth(3)).to_contain_text("The tool list was reordered: Write moved.")
    expect(turns.nth(3).locator(".meter.miss")).to_be_visible()
    expect(turns.nth(5)).to_contain_text("Boom")
    expect(turns.nth(1).get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("first event after .*, took")
    )
    turns.nth(1).locator("summary").click()
    expect(turns.nth(1).locator(".turn-changes li")).to_have_text(["2 new messages"])
    picture(page, "session-light")
    turns.nth(1).locator(".turn-link").click()
    expect(page.locator("#exchange")).to_contain_text("Bash")
    page.get_by_role("link", name="session", exact=True).click()
    expect(turns).to_have_count(6)


@pytest.mark.parametrize("look", ["dark", "phone"])
def test_it_can_be_read_in_the_dark_and_on_a_phone(
    look: str, worked: Gateway, visit: Callable[..., Any]
) -> None:
    options: dict[str, Any] = {"color_scheme": "dark"}
    if look == "phone":
        options = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    page = visit(worked, "#sessions", **options)
    expect(page.locator(".sessions .row")).to_have_count(1)
    picture(page, f"sessions-{look}")
    page.locator(".sessions .row").click()
    expect(page.locator(".turn")).to_have_count(6)
    picture(page, f"session-{look}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    pane = page.locator(".session")
    assert pane.evaluate("element => element.scrollWidth <= element.clientWidth")
    poor = [(text, round(contrast(a, b), 1)) for text, a, b in page.evaluate(PAINTED) if contrast(a, b) < 4.5]
    assert poor == []


def test_the_keyboard_is_enough(worked: Gateway, visit: Callable[..., Any]) -> None:
    page = visit(worked)
    page.keyboard.press("s")
    expect(page.locator(".sessions .row")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".turn")).to_have_count(6)
    page.keyboard.press("Escape")
    expect(page.locator(".sessions .row")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#list .row")).to_have_count(6)


def test_ten_thousand_sessions_have_few_rows(
    visit: Callable[..., Any], loop: Loop, upstream: ScriptedUpstream
) -> None:
    now = time.time()
    shown = {"at": 1, "client": "c", "profile": None, "model": "m", "target": None, "upstream_protocol": None}
    made = [
        Receipt(
            f"r{n}", now - n, session=f"{n:016x}", opening=f"Task number {n}", model="m", input=10, micros=1,
            summary=json.dumps({"id": f"r{n}", **shown}).encode(),
        )
        for n in range(10_000)
    ]  # fmt: skip
    with gateway(config(upstream), loop) as running:
        running.state.store.add_receipts(lambda: made).result()
        page = visit(running, "#sessions")
        expect(page.locator(".sessions .row").first).to_contain_text("Task number 0")
        pane = page.locator(".sessions .list")
        for _ in range(25):
            pane.evaluate("element => { element.scrollTop = element.scrollHeight }")
            if page.locator(".sessions .row", has_text="Task number 9999").count():
                break
            page.wait_for_timeout(100)
        expect(page.locator(".sessions .row", has_text="Task number 9999")).to_be_visible()
        assert page.locator(".sessions .row").count() < 60
        page.close()
