"""The inspector's list: live updates, filters, a thousand exchanges, keyboard, reconnection."""

import concurrent.futures
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser.asking import MENDED, ask, asked, calls, held, says
from playwright.sync_api import expect
from support.gateways import Gateway
from support.processes import dragoman
from support.scripted_upstream import ScriptedUpstream, status


def rows(page: Any) -> Any:
    return page.get_by_role("option")


def test_exchanges_appear_live(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    page = visit(served)
    expect(page.get_by_text("No exchanges yet")).to_be_visible()
    expect(page.locator("#live")).to_have_text("live")
    gate = threading.Event()
    upstream.script(held(calls("Bash", MENDED), gate, 1))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(ask, served)
        expect(page.locator(".row[data-state=running]")).to_have_count(1)
        gate.set()
        expect(page.locator(".row[data-state=mended]")).to_have_count(1)
        assert answer.result().status == 200
    row = rows(page).first
    expect(row).to_contain_text("1 mended")
    expect(row).to_contain_text("tool-alias")
    expect(row).to_contain_text("1,234 → 56")
    expect(page.locator("#foot")).to_contain_text("1 exchange · 1 with mended calls")


def test_filters_find_failures_and_models(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(
        calls("Bash", MENDED), status(429, b'{"error":{"message":"Slow down, please"}}'), says("Hello")
    )
    for model in ("qwen-coder", "glm-5", "kimi-k3"):
        ask(served, model)
    page = visit(served)
    expect(rows(page)).to_have_count(3)
    page.get_by_role("button", name="failed").click()
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text("429 rate_limit")
    expect(rows(page).first).to_contain_text("Slow down, please")
    page.keyboard.press("f")
    expect(rows(page)).to_have_count(3)
    box = page.get_by_role("searchbox", name="Filter exchanges")
    for text, count in {
        "model:coder": 1,
        "mended": 1,
        "rule:tool-alias": 1,
        "status:429": 1,
        "up/kimi": 1,
        "slow:500": 0,
        "mended model:glm": 0,
    }.items():
        box.fill(text)
        expect(rows(page)).to_have_count(count)
    expect(page.get_by_text("No exchange matches this filter")).to_be_visible()
    page.get_by_role("button", name="Clear the filter").click()
    expect(rows(page)).to_have_count(3)


def test_live_exchanges_are_filtered_too(visit: Callable[..., Any], served: Gateway) -> None:
    page = visit(served)
    expect(page.locator("#live")).to_have_text("live")
    page.get_by_role("searchbox").fill("model:wanted")
    expect(page.get_by_text("No exchange matches this filter")).to_be_visible()
    asked(served, "another")
    asked(served, "wanted-1")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text("wanted-1")


def test_a_thousand_exchanges_render_as_few_rows_as_twenty(
    visit: Callable[..., Any], served: Gateway
) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: asked(served, f"model-{number}", stream=False), range(1000)))
    page = visit(served)
    expect(page.locator("#foot")).to_contain_text("200+ exchanges")
    assert 20 <= rows(page).count() <= 60
    page.get_by_role("listbox").focus()
    for _ in range(6):  # a page of two hundred each time
        page.keyboard.press("G")
        page.wait_for_timeout(150)
    expect(page.locator("#foot")).to_contain_text("1,000 exchanges")
    page.keyboard.press("G")
    last = page.locator(".row[data-active]")
    expect(last).to_have_attribute("aria-posinset", "1000")
    expect(last).to_have_attribute("aria-setsize", "1000")
    expect(last).to_be_in_viewport()
    assert rows(page).count() <= 60
    asked(served, "newest")
    expect(page.get_by_role("button", name="1 newer exchange")).to_be_visible()
    expect(last).to_be_in_viewport()  # the scroll position stays
    page.get_by_role("button", name="1 newer exchange").click()
    expect(rows(page).first).to_contain_text("newest")


def test_the_keyboard_can_do_everything(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(calls("Bash", MENDED), says("Second"), says("Third"))
    oldest, _, newest = (asked(served, model) for model in ("one", "two", "three"))
    page = visit(served)
    expect(rows(page)).to_have_count(3)
    for key in ("j", "j", "j", "k", "j"):
        page.keyboard.press(key)
    expect(page.locator(".row[data-active]")).to_contain_text("one")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="one → up/one")).to_be_visible()
    assert page.url.endswith(f"#{oldest}")
    for number, name in enumerate(("answer", "timeline", "request", "raw", "replay"), 1):
        page.keyboard.press(str(number))
        expect(page.get_by_role("tab", name=name, selected=True)).to_be_visible()
    page.keyboard.press("g")
    expect(page.get_by_role("heading", name="three → up/three")).to_be_visible()
    assert page.url.endswith(f"#{newest}/replay")
    page.keyboard.press("Escape")
    expect(page.locator("#exchange")).to_be_hidden()
    page.keyboard.press("/")
    page.keyboard.type("jk1?")
    expect(page.get_by_role("searchbox")).to_have_value("jk1?")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_have_value("")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_back_leads_from_an_exchange_to_the_list(visit: Callable[..., Any], served: Gateway) -> None:
    asked(served, "one")
    asked(served, "two")
    page = visit(served)
    rows(page).first.click()
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="one → up/one")).to_be_visible()
    page.go_back()
    expect(page.locator("#exchange")).to_be_hidden()
    page.go_forward()
    expect(page.get_by_role("heading", name="one → up/one")).to_be_visible()


def test_the_list_reconnects_after_a_restart(
    visit: Callable[..., Any], served: Gateway, tmp_path: Path
) -> None:
    with dragoman(tmp_path, "demo", "--port", "0") as first:
        at = Gateway(first.ready(), served.state, served.loop)
        page = visit(at, quiet=False)  # the console reports an unreachable gateway as an error
        expect(page.locator("#live")).to_have_text("live")
        first.interrupt()
        assert first.wait() == 0
        expect(page.locator("#live")).to_have_text("reconnecting…")
        with dragoman(tmp_path, "demo", "--port", at.url.rpartition(":")[2]) as second:
            second.ready()
            asked(at, "demo-misnamed")
            expect(page.locator("#live")).to_have_text("live", timeout=15_000)
            expect(rows(page)).to_contain_text("demo-misnamed")
