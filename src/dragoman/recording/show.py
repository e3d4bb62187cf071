"""A recording and its replay for people: both sides step by step, and what differs from then."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator

import click
import msgspec

from ..tools.receipts import CallReceipt
from .format import Recording
from .replay import Replayed, is_partial

_ARROWS = {"upstream": ("<-- upstream", "cyan"), "client": ("--> client", "green")}
_WIDEST = 12


def steps(recording: Recording, played: Replayed, width: int) -> Iterator[str]:
    """What happened, one line each, no wider than `width`."""
    yield _head(recording)
    happened = [*_asked(recording, width), *_answered(played, width)]
    yield from (line for _, line in sorted(happened, key=lambda one: one[0]))
    yield from (_call(receipt) for receipt in played.receipts)
    if played.failure is not None:
        yield click.style(f"the answer ends in an error: {_plain(played.failure.message)}", fg="red")


def _asked(recording: Recording, width: int) -> Iterator[tuple[float, str]]:
    read = recording.read
    if read is not None:
        yield read.t, _line(read.t, "<-- client", "blue", read.body, width, f"{read.method} {read.path} ")
    for call in recording.calls:
        asked, broke = call.asked, call.broke
        yield asked.t, _line(asked.t, "--> upstream", "blue", asked.body, width, f"{asked.url} ")
        if broke is not None:
            failed = f"failed: {broke.failure.message}"
            yield broke.t, _line(broke.t, "<-- upstream", "red", b"", width, failed)


def _answered(played: Replayed, width: int) -> Iterator[tuple[float, str]]:
    for step in played.steps:
        arrow, colour = _ARROWS[step.side]
        yield step.t, _line(step.t, arrow, colour, step.data, width)


def verdict(recording: Recording, played: Replayed) -> str:
    if not played.same:
        return click.style("the client would get something else now", fg="yellow")
    if is_partial(recording):
        return click.style("so far as it went, the client would get the same bytes now", fg="green")
    return click.style("the client would get the same bytes now", fg="green")


def differences(recording: Recording, played: Replayed) -> Iterator[str]:
    """A diff from what the client got to what it would get."""
    then, now = _lines(recording.sent), _lines(played.client)
    for line in difflib.unified_diff(then, now, "then", "now", lineterm=""):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield click.style(_plain(line), fg=colour) if colour else _plain(line)


def _head(recording: Recording) -> str:
    begun, ended = recording.begun, recording.ended
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(begun.at))
    asked = [call.asked for call in recording.calls[-1:]]
    way = " from ".join([begun.client, *(f"{one.upstream} ({one.protocol})" for one in asked)])
    end = f"{ended.outcome}, HTTP {ended.status}, {ended.t:.3f} s" if ended else "the recording breaks off"
    return click.style(f"exchange {begun.id}, {when}: {way}; {end}", bold=True)


def _line(t: float, arrow: str, colour: str, data: bytes, width: int, before: str = "") -> str:
    size = f"{len(data):>8} B" if data else " " * 10
    shown = _plain(before + data[:width].decode("utf-8", "replace"))
    room = max(20, width - 9 - 1 - _WIDEST - 1 - len(size) - 2)
    if len(shown) > room:
        shown = shown[: room - 1] + "…"
    return f"{t:9.3f} {click.style(f'{arrow:<{_WIDEST}}', fg=colour)} {size}  {shown}"


def _call(receipt: CallReceipt) -> str:
    fixes = ", ".join(f"{fix.rule} at {_plain(fix.path) or '/'}" for fix in receipt.fixes)
    said = f"call {_plain(receipt.name) or '(without a name)'} {_plain(receipt.id)}: "
    if receipt.dropped:
        return said + f"left out ({receipt.dropped})"
    if not receipt.complete:
        return said + click.style("cut off", fg="red")
    said += f"mended by {fixes}" if fixes else "unchanged"
    if receipt.problems:
        wrong = "does not fit" if receipt.offered else "cannot be run"
        said += click.style(f"; {wrong}: {_plain(receipt.problems[0])}", fg="red")
    return said


def _plain(text: str) -> str:
    """What models and clients wrote must not move the terminal's cursor."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _lines(data: bytes) -> list[str]:
    """An event stream by its lines; a body, which is one line, as JSON that is laid out."""
    text = data.decode("utf-8", "replace")
    if "\n" not in text.strip():
        try:
            return msgspec.json.format(data, indent=2).decode().splitlines()
        except msgspec.DecodeError:
            pass
    return text.splitlines()
