"""The pytest plugin: the fixture `dragoman_replay` and the marker `dragoman`.

pytest imports this module at every start, so it imports the gateway only if a test uses the fixture.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .sdks import SDKS

_FOLDER = "recordings"
_MARKER = (
    "dragoman(recordings='recordings', record=False, fault=()): the folder of the recordings, beside the "
    "test file; whether requests that are not recorded go to the models of the Dragoman config and are "
    "recorded; faults such as 'cut@3' or 'misnamed'."
)
_OPTIONS = frozenset({"recordings", "record", "fault"})


class Replay:
    """A running replay server."""

    def __init__(self, url: str, misses: list[str]) -> None:
        self.url = url
        """The server's address: the base URL of Anthropic's and Google's SDKs."""
        self.misses = misses
        """Why requests were not answered. The test fails if any are left at its end."""

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL for the SDK of each protocol."""
        return {protocol: self.url + sdk.path for protocol, sdk in SDKS.items()}

    @property
    def env(self) -> dict[str, str]:
        """The variables that make the official SDKs use the server, for an agent in its own process."""
        urls = {sdk.url_variable: self.url + sdk.path for sdk in SDKS.values()}
        return urls | {sdk.key_variable: "replay" for sdk in SDKS.values()}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dragoman")
    group.addoption(
        "--dragoman-record",
        action="store_true",
        help="Ask the models of the Dragoman config what no recording answers, and record it.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def dragoman_replay(request: pytest.FixtureRequest) -> Iterator[Replay]:
    """A server on a free port that answers from the recordings beside the test."""
    from ..config import discover
    from .faults import parse_fault
    from .server import ReplayServer, ReplaySettings, config_for

    options = _marked(request.node)
    misses: list[str] = []
    record = bool(options.get("record")) or bool(request.config.getoption("--dragoman-record"))
    faults: Any = options.get("fault", ())
    settings = ReplaySettings(
        folder=Path(request.node.path).parent / options.get("recordings", _FOLDER),
        on_miss="record" if record else "fail",
        faults=[parse_fault(fault) for fault in ([faults] if isinstance(faults, str) else faults)],
        on_missed=misses.append,
    )
    real = discover(None, os.environ) if record else None
    with ReplayServer(config_for(settings, "127.0.0.1", 0, real), settings) as server:
        yield Replay(server.url, misses)
    if misses and not record:
        pytest.fail("\n".join(misses), pytrace=False)


def _marked(node: pytest.Item) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("dragoman"))):  # the nearest one wins
        unknown = sorted(marker.kwargs.keys() - _OPTIONS)
        if unknown or marker.args:
            known = ", ".join(sorted(_OPTIONS))
            raise pytest.UsageError(f"pytest.mark.dragoman takes {known}, not {unknown or marker.args}")
        options |= marker.kwargs
    return options
