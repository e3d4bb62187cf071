"""The usage page: plots and tables of what was spent, and the way from there to the exchanges."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser.asking import MENDED, ask, asked, calls, config
from browser.test_inspector_looks import PAINTED, contrast
from playwright.sync_api import expect
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream, status

from dragoman.store import Receipt

DAY = 86_400
PRICES = '[prices]\n"up/claude*" = { input = 1000, output = 0 }\n'


def receipt(number: int, days: float, model: str, micros: int | None, **more: Any) -> Receipt:
    return Receipt(
        id=f"r{number}", at=time.time() - days * DAY, model=model, key=("mara", "jonas")[number % 2],
        upstream="up", session=f"{number % 3:016x}", input=1000, cached=750, output=100, calls=1,
        micros=micros, summary=b'{"id":"r","at":1,"client":"c","profile":null,"model":"m","target":null,'
        b'"upstream_protocol":null}', **more,
    )  # fmt: skip


@pytest.fixture
def used(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    """A gateway whose store has a week of requests."""
    week = [
        *(receipt(number, number / 2, "opus", 2_000_000) for number in range(12)),
        *(receipt(20 + number, number, "local", None, mended=2) for number in range(3)),
        *(receipt(30 + number, 0.1, f"model-{number}", 10_000 - number, failed=1) for number in range(8)),
    ]
    with gateway(config(upstream), loop) as running:
        running.state.store.add_receipts(lambda: week).result()
        yield running


def rows(page: Any) -> Any:
    return page.locator(".usage-table tbody tr")


def test_sums_over_time_and_by_model(visit: Callable[..., Any], used: Gateway) -> None:
    page = visit(used, "#usage")
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    tile = page.get_by_role("button", name=re.compile("^Spend"))
    expect(tile).to_contain_text("$24.08")
    expect(tile).to_contain_text("3 of unknown price")
    expect(tile).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name=re.compile("^From cache"))).to_contain_text(re.compile(r"75\s%"))
    expect(rows(page)).to_have_count(10)
    expect(rows(page).first).to_contain_text("opus")
    expect(rows(page).first).to_contain_text("$24.00")
    local = rows(page).filter(has_text="local")
    expect(local.locator(".cost")).to_have_text("unknown")  # and not $0
    expect(page.locator(".usage-table tfoot")).to_contain_text("$24.08 + ?")
    # Six series have a colour of their own, the rest is drawn together.
    expect(page.locator(".plot rect.s0")).not_to_have_count(0)
    expect(page.locator(".plot rect.s6")).to_have_count(0)
    expect(page.locator(".plot rect.rest")).not_to_have_count(0)


def test_another_measure_group_and_range(visit: Callable[..., Any], used: Gateway) -> None:
    page = visit(used, "#usage")
    page.get_by_role("button", name=re.compile("^Mended calls")).click()
    expect(rows(page).first).to_contain_text("local")  # the measure sorts the table too
    page.get_by_role("button", name="key", exact=True).click()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="24 hours").click()
    expect(page.get_by_role("group", name=re.compile("^Mended calls per hour, by key"))).to_be_visible()
    assert page.evaluate("location.hash") == "#usage?by=key&range=24h&measure=mended"
    page.reload()
    expect(page.get_by_role("button", name="24 hours")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=re.compile("^From cache")).click()
    expect(page.locator(".plot path.line")).not_to_have_count(0)
    page.go_back()
    expect(page.get_by_role("group", name=re.compile("^Mended calls per hour"))).to_be_visible()


def test_single_values_by_pointer_keyboard_and_table(visit: Callable[..., Any], used: Gateway) -> None:
    page = visit(used, "#usage")
    plot = page.get_by_role("group", name=re.compile("^Spend per day, by model"))
    tip = page.locator(".tip")
    plot.focus()
    page.keyboard.press("End")
    expect(tip).to_contain_text(time.strftime("%Y-%m-%d", time.gmtime()))
    page.keyboard.press("ArrowLeft")
    expect(tip).to_contain_text(time.strftime("%Y-%m-%d", time.gmtime(time.time() - DAY)))
    expect(tip).to_contain_text("opus$4.00")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    expect(plot).to_be_visible()  # Escape closed the tooltip, not the page
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 60)
    expect(tip).to_be_visible()
    page.get_by_text("Values of the plot").click()
    table = page.get_by_role("table", name="Spend per day, by model")
    expect(table.get_by_role("columnheader")).to_have_text(
        ["time", "opus", *(f"model-{number}" for number in range(5)), "others"]
    )
    expect(table.get_by_role("row")).to_have_count(9)  # the head and eight days, as seven days ago is a part


def test_a_name_leads_to_its_exchanges_and_a_key_back(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream, loop: Loop
) -> None:
    upstream.script(calls("Bash", MENDED), calls("Bash", MENDED))
    asked(served, "one")
    asked(served, "two")
    loop.run(served.state.observed.ledger.close())
    page = visit(served)
    expect(page.get_by_role("option")).to_have_count(2)
    page.keyboard.press("u")
    page.get_by_role("button", name="two", exact=True).click()
    expect(page.get_by_role("option")).to_have_count(1)
    expect(page.get_by_label("Filter exchanges")).to_have_value("model:two")
    page.get_by_role("link", name="Usage").click()
    page.get_by_role("button", name="session", exact=True).click()
    session = rows(page).first.get_by_role("button")
    expect(session).to_have_text(re.compile("^[0-9a-f]{16}$"))
    name = session.text_content()
    session.click()
    expect(page.get_by_label("Filter exchanges")).to_have_value(f"session:{name}")
    expect(page.get_by_role("option")).to_have_count(2)  # both began with the same message
    page.keyboard.press("u")
    expect(page.get_by_role("heading", name="Usage")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("listbox")).to_be_visible()


def test_real_requests_are_priced(
    visit: Callable[..., Any], served: Gateway, upstream: ScriptedUpstream, loop: Loop
) -> None:
    with gateway(config(upstream) + PRICES, loop) as running:
        upstream.script(calls("Bash", MENDED), calls("Bash", MENDED), status(500, b"{}"))
        asked(running, "claude-x")
        asked(running, "other")
        ask(running, "claude-x")
        loop.run(running.state.observed.ledger.close())
        page = visit(running, "#usage")
        expect(rows(page).filter(has_text="claude-x")).to_contain_text("$1.23")
        expect(rows(page).filter(has_text="other").locator(".cost")).to_have_text("unknown")
        expect(page.get_by_role("button", name=re.compile("^Failures"))).to_contain_text("1")
        page.get_by_role("link", name="Exchanges").click()
        expect(page.get_by_role("option").filter(has_text="other").locator(".cost")).to_have_text("?")
        page.close()


def test_nothing_to_show(visit: Callable[..., Any], served: Gateway) -> None:
    page = visit(served, "#usage?range=24h")
    expect(page.get_by_role("heading", name="No requests in the last 24 hours")).to_be_visible()
    expect(page.locator(".tile")).to_have_count(0)
    page.get_by_role("button", name="Show 7 days").click()
    expect(page.get_by_role("heading", name="No requests in the last 7 days")).to_be_visible()


def test_an_error_is_shown(visit: Callable[..., Any], used: Gateway) -> None:
    page = visit(used, quiet=False)
    body = '{"error": {"message": "the store is locked"}}'
    page.route("**/usage?*", lambda route: route.fulfill(status=503, body=body))
    page.reload()  # a page that was loaded before may still send its requests past the route
    page.keyboard.press("u")
    expect(page.get_by_role("alert")).to_have_text("the store is locked")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_usage_can_be_read_in_light_and_dark(
    scheme: str, visit: Callable[..., Any], used: Gateway
) -> None:
    page = visit(used, "#usage", color_scheme=scheme, reduced_motion="reduce")
    expect(rows(page)).to_have_count(10)
    page.get_by_text("Values of the plot").click()
    page.locator(".plot").focus()
    page.keyboard.press("End")
    expect(page.locator(".tip")).to_be_visible()
    painted = page.evaluate(PAINTED)
    assert len(painted) > 60
    # Text in a picture has a fill, not a colour.
    painted += page.evaluate("""() => [...document.querySelectorAll('.plot text')].map((e) =>
      [e.textContent, getComputedStyle(e).fill, getComputedStyle(document.body).backgroundColor])""")
    assert [(text, round(contrast(a, b), 1)) for text, a, b in painted if contrast(a, b) < 4.5] == []
    marks = page.evaluate("""() => [...document.querySelectorAll('.plot rect')].map((e) =>
      [getComputedStyle(e).fill, getComputedStyle(document.body).backgroundColor])""")
    assert marks
    assert [pair for pair in marks if contrast(*pair) < 3] == []


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_usage_fits_every_width(width: int, visit: Callable[..., Any], used: Gateway) -> None:
    page = visit(used, "#usage?range=90d", viewport={"width": width, "height": 700})
    expect(rows(page)).to_have_count(10)
    page.get_by_text("Values of the plot").click()
    overflow = "(e) => e.scrollWidth - e.clientWidth"
    assert page.locator("#usage").evaluate(overflow) == 0
    assert page.locator("html").evaluate(overflow) == 0
    nameless = """() => [...document.querySelectorAll('#usage :is(button, summary, [role], table)')].filter(
      (e) => e.checkVisibility() && e.role !== 'status'
        && !e.getAttribute('aria-label') && !e.textContent.trim()
    ).map((e) => e.outerHTML)"""
    assert page.evaluate(nameless) == []
