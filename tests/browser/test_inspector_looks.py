"""The inspector's appearance: contrast in light and dark mode, widths, accessible names."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from browser.asking import MENDED, ask, asked, calls
from playwright.sync_api import expect
from support.gateways import Gateway
from support.scripted_upstream import ScriptedUpstream, status

TABS = ("answer", "timeline", "request", "raw", "replay")
# Text and background colours as the browser computes them: rgb() or rgba().
PAINTED = """() => [...document.querySelectorAll('body *')].filter((e) =>
  [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())
  && e.checkVisibility() && !e.closest('.hidden, noscript, option, .held, :disabled')
).map((e) => {
  const painted = (at, what) => getComputedStyle(at)[what];
  let behind = e;
  const clear = (at) => /, 0\\)$/.test(painted(at, 'backgroundColor'));
  while (behind.parentElement && clear(behind)) behind = behind.parentElement;
  return [e.textContent.slice(0, 40), painted(e, 'color'), painted(behind, 'backgroundColor')];
})"""


@pytest.fixture
def id(served: Gateway, upstream: ScriptedUpstream) -> str:
    upstream.script(
        status(429, b'{"error":{"message":"Slow down, please, and come back in a while"}}'),
        calls("Bash", MENDED),
    )
    ask(served)
    return asked(served)


def luminance(colour: str) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(float(part) / 255) for part in re.findall(r"[\d.]+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_light_and_dark(
    scheme: str, visit: Callable[..., Any], served: Gateway, id: str
) -> None:
    page = visit(served, f"#{id}", color_scheme=scheme, reduced_motion="reduce")
    expect(page.get_by_role("article")).to_be_visible()
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(background) > 0.5) == (scheme == "light")
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        painted = page.evaluate(PAINTED)
        assert len(painted) > 20
        poor = [(text, round(contrast(a, b), 1)) for text, a, b in painted if contrast(a, b) < 4.5]
        assert poor == [], name


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_nothing_is_cut_off_at_any_width(
    width: int, visit: Callable[..., Any], served: Gateway, id: str
) -> None:
    page = visit(served, viewport={"width": width, "height": 700})
    expect(page.get_by_role("option")).to_have_count(2)
    overflow = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(overflow) <= 0
    page.get_by_role("option").first.click()
    expect(page.get_by_role("article")).to_be_visible()
    assert page.get_by_role("listbox").is_visible() == (width > 900)
    wide = "document.querySelector('#exchange').scrollWidth - document.querySelector('#exchange').clientWidth"
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        assert page.evaluate(overflow) <= 0, name
        assert page.evaluate(wide) <= 0, name
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("listbox")).to_be_visible()


def test_every_control_has_an_accessible_name(visit: Callable[..., Any], served: Gateway, id: str) -> None:
    page = visit(served, f"#{id}")
    expect(page.get_by_role("article")).to_be_visible()
    nameless = """() => [...document.querySelectorAll('button, input, select, summary, [role]')].filter((e) =>
      e.checkVisibility() && e.role !== 'status'
      && !['aria-label', 'aria-labelledby'].some((name) => e.getAttribute(name))
      && !e.textContent.trim() && !e.labels?.length).map((e) => e.outerHTML)"""
    for name in TABS:
        page.get_by_role("tab", name=name).click()
        assert page.evaluate(nameless) == []
    expect(page.get_by_role("listbox").get_by_role("option", selected=True)).to_have_accessible_name(
        re.compile("mended .* qwen → up/qwen claude-code 1 mended number-as-text, tool-alias")
    )
