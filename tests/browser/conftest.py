"""Fixtures for the inspector in a real browser (`make test-browser`). A default run skips these tests."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser.asking import config
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream, in_background

CHROMIUM = os.environ.get("DRAGOMAN_CHROMIUM")
collect_ignore_glob = [] if CHROMIUM else ["test_*.py"]

LAPTOP = {"width": 1280, "height": 800}
PATIENCE = 10_000  # ms


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's sandbox needs rights that root in a container does not have.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture
def served(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    with gateway(config(upstream), loop) as running:
        yield running


@pytest.fixture
def visit(browser: Any, served: Gateway) -> Iterator[Callable[..., Any]]:
    """Open the inspector of a gateway. Fails on any console error or policy violation.

    It needs `served` only so that pages close before their gateway.
    """
    contexts: list[Any] = []
    troubles: list[str] = []

    def opened(at: Gateway, place: str = "", *, quiet: bool = True, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": LAPTOP, **options})
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        if quiet:
            page.on("console", lambda said: troubles.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request", lambda asked: asked.url.startswith((at.url, "blob:")) or troubles.append(asked.url)
        )
        page.goto(f"{at.url}/inspector{place}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
