"""The log: text on a terminal, JSON elsewhere, one line per event, no secrets."""

import io
import json
import logging

import pytest

from dragoman.credentials.secret import Secret
from dragoman.observe import logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


pytestmark = pytest.mark.usefixtures("log_put_back")
log = logging.getLogger("dragoman.gateway")


def test_json_lines_without_a_terminal() -> None:
    stream = io.StringIO()
    logs.set_up("info", stream)
    log.info("%s -> %s", "anthropic", "up/m", extra={"exchange": "abc", "seconds": 0.5, "mended": None})
    log.debug("not said")
    said = json.loads(stream.getvalue())
    assert said.pop("time") > 0
    assert said == {
        "level": "info",
        "logger": "dragoman.gateway",
        "message": "anthropic -> up/m",
        "exchange": "abc",
        "seconds": 0.5,
    }


def test_a_text_line_on_a_terminal() -> None:
    stream = Terminal()
    logs.set_up("info", stream)
    log.info("%s -> %s", "anthropic", "up/m", extra={"exchange": "abc", "seconds": 0.5})
    assert stream.getvalue()[9:] == "anthropic -> up/m exchange=abc seconds=0.5\n"
    log.warning("careful")
    assert "\x1b[33m" in stream.getvalue()


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["people", "programs"])
def test_an_exception_is_logged_with_type_and_place_but_without_text(stream: io.StringIO) -> None:
    logs.set_up("info", stream)
    try:
        raise ValueError("Bearer sk-secret-in-the-text")
    except ValueError:
        log.exception("it failed", extra={"key": Secret("sk-secret")})
    said = stream.getvalue()
    assert "ValueError at test_logs:" in said
    assert "sk-secret" not in said
    assert Secret("sk-secret").fingerprint in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["people", "programs"])
def test_a_line_break_in_a_name_cannot_forge_a_log_line(stream: io.StringIO) -> None:
    logs.set_up("info", stream)
    log.info("anthropic %s -> nowhere", "evil\n12:00:00 \x1b[2Jall is well" + "x" * 10_000)
    said = stream.getvalue()
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert len(said) < 2300


def test_the_logger_does_not_propagate_and_has_one_handler() -> None:
    logs.set_up("debug", io.StringIO())
    root = logging.getLogger("dragoman")
    assert not root.propagate
    logs.set_up("info", io.StringIO())
    assert len(root.handlers) == 1
