"""Ways in which servers damage a good answer: cut, delay, refuse or replace it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from ...model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Failed,
    FailureKind,
    Stop,
    TextDelta,
)
from ...model.messages import Part, Text, ToolCall
from . import agent, answer_bytes, replies
from .answer_bytes import ReplyContext
from .replies import FOREVER, Cut, Reply, Step, Wait

_encode = msgspec.json.Encoder().encode

PAGE = b"""<html>
<head><title>502 Bad Gateway</title></head>
<body>
<center><h1>502 Bad Gateway</h1></center>
<hr><center>nginx/1.27.3</center>
</body>
</html>
"""


def planned(
    context: ReplyContext, *, eager: bool = True, with_optional: bool = False, ignore_results: bool = False
) -> list[Part]:
    """The turn of a well-behaved model, by default with a call if the request offers any tool."""
    turn = context.turn
    if turn is None:
        turn = agent.turn(
            context.request, eager=eager, with_optional=with_optional, ignore_results=ignore_results
        )
    return context.with_ids(turn)


def cut(context: ReplyContext) -> Reply:
    """Close the connection in the middle of the call, or of the text if there is no call."""
    whole = answer_bytes.encode_reply(context, planned(context))
    if not context.stream:
        data = b"".join(step for step in whole.steps if isinstance(step, bytes))
        return msgspec.structs.replace(whole, steps=(data[: len(data) // 2], Cut()))
    return msgspec.structs.replace(whole, steps=(*_half(context), Cut()))


def reset(context: ReplyContext) -> Reply:
    """Reset the connection in the middle of a UTF-8 character."""
    reply = answer_bytes.encode_reply(context, [Text("It costs 5 €")])
    data = b"".join(step for step in reply.steps if isinstance(step, bytes))
    torn = data[: data.index("€".encode()) + 1]
    return msgspec.structs.replace(reply, steps=(torn, Wait(0.05), Cut(reset=True)))


def _half(context: ReplyContext) -> Iterator[Step]:
    """The stream up to the middle of the last block, cut inside a frame."""
    parts = planned(context)
    last = len(parts) - 1
    pairs = list(answer_bytes.encoded(context, [*answer_bytes.opening(context), *answer_bytes.blocks(parts)]))
    # A call of Gemini has no deltas, only one frame at its end: cut that one.
    growing = [n for n, (event, data) in enumerate(pairs) if data and _grows(event, last)]
    ends = [n for n, (event, _) in enumerate(pairs) if event == BlockEnd(last)]
    places = growing or ends
    middle = places[len(places) // 2]
    yield from (data for _, data in pairs[:middle] if data)
    torn = pairs[middle][1]
    yield torn[: len(torn) // 2]


def _grows(event: Event | Wait, block: int) -> bool:
    return isinstance(event, (ArgumentsDelta, TextDelta)) and event.block == block


def length(context: ReplyContext) -> Reply:
    """Stop with max_tokens in the middle of the call, or of the text."""
    *before, last = planned(context)
    half = _halved(last)
    # If a body carries the arguments as a string, servers keep the cut string there.
    complete = not isinstance(half, ToolCall) or (context.wire.server.keeps_cut_calls and not context.stream)
    events: list[Event] = [*answer_bytes.opening(context), *answer_bytes.blocks(before)]
    events += answer_bytes.block(len(before), half, complete=complete)
    return answer_bytes.send(context, [*events, *answer_bytes.ending([*before, half], End(Stop.MAX_TOKENS))])


def _halved(part: Part) -> Part:
    match part:
        case ToolCall(arguments=text):
            return msgspec.structs.replace(part, arguments=text[: len(text) // 2])
        case Text(text):
            return Text(text[: len(text) // 2])
        case _:
            return part


def error(context: ReplyContext) -> Reply:
    """An error event after part of the answer; an HTTP error if the client asked for one body."""
    failure = Failed(FailureKind.SERVER, "The model broke down in the middle of its answer", 500)
    *before, last = planned(context)
    events: list[Event] = [*answer_bytes.opening(context), *answer_bytes.blocks(before)]
    unfinished = [e for e in answer_bytes.block(len(before), _halved(last)) if not isinstance(e, BlockEnd)]
    return answer_bytes.send(context, [*events, *unfinished, failure])


def overloaded(context: ReplyContext) -> Reply:
    """HTTP 200, a first event without content, then the error."""
    server = context.wire.server
    failure = Failed(FailureKind.OVERLOADED, "Overloaded", server.overloaded)
    if not context.stream:
        return replies.body(context.wire.error_body(failure, f"req_{context.seed}"))
    reply = answer_bytes.send(context, [*answer_bytes.opening(context), failure])
    if server.first_frame is not None:
        head = server.first_frame(
            context.request.model, context.seed, answer_bytes.prompt_tokens(context.request)
        )
        return msgspec.structs.replace(reply, steps=(head, *reply.steps))
    return reply


def rate_limited(context: ReplyContext) -> Reply:
    failure = Failed(FailureKind.RATE_LIMIT, "Rate limit reached. Try again in 1 second.", 429)
    details = context.wire.server.retry_details
    if not details:
        return answer_bytes.fail(context, failure, retry_after="1")
    value: dict[str, Any] = msgspec.json.decode(context.wire.error_body(failure, ""))
    value["error"]["details"] = details
    return replies.body(_encode(value), status=429, retry_after="1")


def refused(kind: FailureKind, status: int, message: str) -> Callable[[ReplyContext], Reply]:
    """A model that always answers with this HTTP error, in the protocol's form."""
    return lambda context: answer_bytes.fail(context, Failed(kind, message, status))


def flaky(context: ReplyContext) -> Reply:
    """Refuse every other attempt at the same request."""
    return (
        rate_limited(context) if context.attempt % 2 else answer_bytes.encode_reply(context, planned(context))
    )


def html(context: ReplyContext) -> Reply:
    return replies.body(PAGE, status=502, content_type="text/html")


def garbage(context: ReplyContext) -> Reply:
    data = b"\x00\xff\xfenot what you asked for\r\n\r\n{]\xc3(" * 8
    return Reply(steps=(data,), content_type=_type(context))


def blank(context: ReplyContext) -> Reply:
    return Reply(content_type=_type(context))


def empty(context: ReplyContext) -> Reply:
    """A complete answer without content."""
    return answer_bytes.send(
        context, [*answer_bytes.opening(context), *answer_bytes.ending([], End(Stop.END))]
    )


def slow(context: ReplyContext) -> Reply:
    """Wait one second before the answer, and 0.1 seconds before each event."""
    reply = answer_bytes.encode_reply(context, planned(context, eager=False))
    paused = tuple(step for each in reply.steps for step in (Wait(0.1), each))
    return msgspec.structs.replace(reply, steps=paused, delay=1.0)


def stalled(context: ReplyContext) -> Reply:
    """Send the first words, then nothing more."""
    return _never_ending(context, ["It begins well, ", Wait(FOREVER)])


def hung(context: ReplyContext) -> Reply:
    """Never send a status line."""
    return msgspec.structs.replace(empty(context), delay=FOREVER)


def endless(context: ReplyContext) -> Reply:
    """Repeat the same words forever."""
    return _never_ending(context, itertools.cycle(["and so on, ", Wait(0.01)]))


def _never_ending(context: ReplyContext, texts: Iterable[str | Wait]) -> Reply:
    if not context.stream:
        # Some servers send spaces before a slow JSON body, as a keepalive.
        spaces = (step if isinstance(step, Wait) else b" " for step in texts)
        return Reply(steps=spaces)
    words = (step if isinstance(step, Wait) else TextDelta(0, step) for step in texts)
    events = itertools.chain(answer_bytes.opening(context), [BlockStart(0, Text())], words)
    return Reply(steps=answer_bytes.frames(context, events), content_type=replies.STREAM)


def _type(context: ReplyContext) -> str:
    return replies.STREAM if context.stream else replies.JSON
