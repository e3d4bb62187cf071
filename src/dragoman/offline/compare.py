"""Ask other models what a recorded conversation asked, turn by turn, and compare the answers.

Every turn is asked with the recorded history, so one model's mistake does not change what the next turn asks.
Tool calls are judged by the tools' schemas.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ..config.types import Config
from ..gateway.exchange.incoming_request import IncomingRequest
from ..gateway.process.listener import GatewayServer
from ..gateway.state import State
from ..model.errors import BadRequest, DragomanError
from ..model.events import Usage
from ..observe.tap import Track
from ..protocols.registry import PROTOCOLS, open_headers
from ..recording import ENDING, RecordingError
from ..recording.format import exchange_in
from ..routing.router import ChosenTarget
from ..tools.receipts import CallReceipt
from ..transport.client import open_client
from .library import Library, RecordingEntry, in_time, read_entry, recorded_answer

_GRACE = 1.0
_LARGEST = 1 << 28
_ENDED_SECONDS = 30.0
_GOOD = ("valid", "mended")


class JudgedCalls(msgspec.Struct, frozen=True):
    """The tool calls of an answer, without those that the client does not get."""

    names: tuple[str, ...]
    valid: int
    mended: int
    bad: int
    """Calls that do not fit their schema, are cut, or name a tool that was not offered."""


class ComparedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A target's answer to one recorded turn."""

    turn: int
    target: str
    """`upstream/model`; empty for the recording."""
    outcome: str
    calls: JudgedCalls
    usage: Usage
    cost: float | None
    """US dollars; None: unknown."""
    seconds: float
    error: str = ""


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one target over all turns."""

    target: str
    answers: int
    failed: int
    valid: int
    mended: int
    bad: int
    input: int
    output: int
    cost: float | None
    """None: the cost of one of the answers is unknown."""
    seconds: float


def totals(rows: Sequence[ComparedAnswer]) -> list[Total]:
    """The sums of the targets, in their order."""
    return [
        total([row for row in rows if row.target == name]) for name in dict.fromkeys(r.target for r in rows)
    ]


def total(rows: Sequence[ComparedAnswer]) -> Total:
    """The sum of answers of one target."""
    costs = [row.cost for row in rows if row.cost is not None]
    return Total(
        target=rows[0].target,
        answers=len(rows),
        failed=sum(row.outcome != "ok" for row in rows),
        valid=sum(row.calls.valid for row in rows),
        mended=sum(row.calls.mended for row in rows),
        bad=sum(row.calls.bad for row in rows),
        input=sum(row.usage.prompt for row in rows),
        output=sum(row.usage.output or 0 for row in rows),
        cost=sum(costs) if len(costs) == len(rows) else None,
        seconds=sum(row.seconds for row in rows),
    )


class AgainstState(State):
    """The state of a gateway that sends every request to one target."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.target = ""
        self.ended: asyncio.Queue[Track] = asyncio.Queue()
        self.observed.tap.on_end = self.ended.put_nowait

    def targets_for(self, incoming: IncomingRequest) -> tuple[ChosenTarget, ...]:
        return self.upstreams.choices(self.target)


def session(path: Path) -> list[RecordingEntry]:
    """The turns of a recorded conversation: one recording, or all of a folder. Raises RecordingError."""
    entries = in_time(Library(path).entries) if path.is_dir() else [read_entry(path)]
    if not entries:
        raise RecordingError(f"{path} has no recording that can be replayed")
    return entries


def recorded_turns(ids: Collection[str], folders: Sequence[Path]) -> list[RecordingEntry]:
    """The recordings of these exchanges. Those that cannot be used are left out."""
    found = [path for folder in folders for path in folder.rglob(f"*{ENDING}") if exchange_in(path) in ids]
    entries: dict[str, RecordingEntry] = {}
    for path in found:
        with contextlib.suppress(DragomanError):
            entries.setdefault(exchange_in(path), read_entry(path))
    return in_time(entries.values())


async def compare(
    config: Config, entries: Sequence[RecordingEntry], targets: Sequence[str]
) -> AsyncIterator[ComparedAnswer]:
    """A row for each turn's recording and for each target, as they come."""
    _check(config, targets)
    server = msgspec.structs.replace(
        config.server,
        host="127.0.0.1",
        port=0,
        unix=None,
        tls=None,
        keys=(),
        store=None,
        record=None,
        direct=True,
    )
    state = AgainstState(msgspec.structs.replace(config, server=server, named_keys={}, path=None))
    gateway = GatewayServer(state)
    await gateway.listen("127.0.0.1", 0)
    try:
        for turn, entry in enumerate(entries, 1):
            yield _recorded(turn, entry, state)
            for target in targets:
                state.target = target
                yield _row(turn, target, await _ask(gateway.address, state, entry))
    finally:
        await gateway.stop(_GRACE)


def _check(config: Config, targets: Sequence[str]) -> None:
    """A wrong name must not be compared: a route for `*` would answer it with another model."""
    for target in targets:
        upstream, _, model = target.partition("/")
        if upstream not in config.upstreams or not model:
            known = ", ".join(config.upstreams)
            raise DragomanError(
                f"--against {target}: write UPSTREAM/MODEL, with one of the upstreams {known}"
            )


async def _ask(url: str, state: AgainstState, entry: RecordingEntry) -> Track:
    asked = entry.recording.request
    assert asked is not None
    async with open_client({"content-type": "application/json"}) as client:
        path = asked.path.replace("[removed]", "removed")  # the recording has no keys in its query
        headers = {name: value for name, value in asked.headers.items() if name in open_headers()}
        answer = await client.request("POST", url + path, headers, asked.body)
        await answer.read(_LARGEST)
    # One request at a time: the next exchange that ends is this one.
    return await asyncio.wait_for(state.ended.get(), _ENDED_SECONDS)


def _row(turn: int, target: str, track: Track) -> ComparedAnswer:
    return ComparedAnswer(
        turn=turn,
        target=target,
        outcome=track.outcome,
        usage=track.usage,
        cost=track.cost,
        seconds=track.seconds,
        error=track.failure.message if track.failure else "",
        calls=_judged(track.receipts),
    )


def _recorded(turn: int, entry: RecordingEntry, state: State) -> ComparedAnswer:
    exchange, _ = recorded_answer(entry)
    ended = entry.recording.ended
    return ComparedAnswer(
        turn=turn,
        target="",
        outcome=ended.outcome if ended else "",
        usage=exchange.usage,
        cost=_recorded_cost(entry, exchange.usage, state),
        seconds=ended.t if ended else 0.0,
        calls=_judged(exchange.receipts),
    )


def _recorded_cost(entry: RecordingEntry, usage: Usage, state: State) -> float | None:
    """What the recorded answer costs by the prices of this config; None: unknown."""
    asked = entry.calls[0].request
    upstream, protocol = state.config.upstreams.get(asked.upstream), PROTOCOLS.get(asked.protocol)
    if upstream is None or protocol is None:
        return None
    try:
        model = protocol.read_request(asked.body, urlsplit(asked.url).path).model
    except BadRequest:
        return None
    return state.prices.cost(upstream, model, usage, entry.recording.begun.at)


def _judged(receipts: Sequence[CallReceipt]) -> JudgedCalls:
    counted = [receipt for receipt in receipts if receipt.dropped is None]
    outcomes = [receipt.outcome for receipt in counted]
    return JudgedCalls(
        tuple(receipt.name for receipt in counted),
        outcomes.count("valid"),
        outcomes.count("mended"),
        sum(outcome not in _GOOD for outcome in outcomes),
    )
