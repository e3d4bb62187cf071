"""What servers do to a good answer: break it off, delay it, refuse it, or send something else."""

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
from .answer_bytes import Scene
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


def planned(scene: Scene) -> list[Part]:
    """The turn of a well-behaved model, with a call wherever one can be made."""
    return scene.with_ids(agent.turn(scene.request, eager=True))


def cut(scene: Scene) -> Reply:
    """Closed in the middle of the call, or of the text where there is no call."""
    whole = answer_bytes.say(scene, planned(scene))
    if not scene.stream:
        data = b"".join(step for step in whole.steps if isinstance(step, bytes))
        return msgspec.structs.replace(whole, steps=(data[: len(data) // 2], Cut()))
    return msgspec.structs.replace(whole, steps=(*_half(scene), Cut()))


def reset(scene: Scene) -> Reply:
    """Reset, not closed, in the middle of a character."""
    reply = answer_bytes.say(scene, [Text("It costs 5 €")])
    data = b"".join(step for step in reply.steps if isinstance(step, bytes))
    torn = data[: data.index("€".encode()) + 1]
    return msgspec.structs.replace(reply, steps=(torn, Wait(0.05), Cut(reset=True)))


def _half(scene: Scene) -> Iterator[Step]:
    """The stream up to the middle of the last block, and of a frame in it."""
    parts = planned(scene)
    last = len(parts) - 1
    pairs = list(answer_bytes.encoded(scene, [*answer_bytes.opening(scene), *answer_bytes.blocks(parts)]))
    # Where the block says nothing before it ends, as Gemini's calls do, its end is all there is to tear.
    growing = [n for n, (event, data) in enumerate(pairs) if data and _grows(event, last)]
    ends = [n for n, (event, _) in enumerate(pairs) if event == BlockEnd(last)]
    places = growing or ends
    middle = places[len(places) // 2]
    yield from (data for _, data in pairs[:middle] if data)
    torn = pairs[middle][1]
    yield torn[: len(torn) // 2]


def _grows(event: Event | Wait, block: int) -> bool:
    return isinstance(event, (ArgumentsDelta, TextDelta)) and event.block == block


def length(scene: Scene) -> Reply:
    """Out of tokens in the middle of the call, or of the text."""
    *before, last = planned(scene)
    half = _halved(last)
    # Where the arguments in a body are a string, that is cut like any other text.
    complete = not isinstance(half, ToolCall) or (scene.wire.server.keeps_cut_calls and not scene.stream)
    events: list[Event] = [*answer_bytes.opening(scene), *answer_bytes.blocks(before)]
    events += answer_bytes.block(len(before), half, complete=complete)
    return answer_bytes.send(scene, [*events, *answer_bytes.ending([*before, half], End(Stop.MAX_TOKENS))])


def _halved(part: Part) -> Part:
    match part:
        case ToolCall(arguments=text):
            return msgspec.structs.replace(part, arguments=text[: len(text) // 2])
        case Text(text):
            return Text(text[: len(text) // 2])
        case _:
            return part


def error(scene: Scene) -> Reply:
    """An error event after part of the answer; an HTTP error where the answer is one body."""
    failure = Failed(FailureKind.SERVER, "The model broke down in the middle of its answer", 500)
    *before, last = planned(scene)
    events: list[Event] = [*answer_bytes.opening(scene), *answer_bytes.blocks(before)]
    unfinished = [e for e in answer_bytes.block(len(before), _halved(last)) if not isinstance(e, BlockEnd)]
    return answer_bytes.send(scene, [*events, *unfinished, failure])


def overloaded(scene: Scene) -> Reply:
    """HTTP 200, a first event without content, and then the news."""
    server = scene.wire.server
    failure = Failed(FailureKind.OVERLOADED, "Overloaded", server.overloaded)
    if not scene.stream:
        return replies.body(scene.wire.error_body(failure, f"req_{scene.seed}"))
    reply = answer_bytes.send(scene, [*answer_bytes.opening(scene), failure])
    if server.first_frame is not None:
        head = server.first_frame(scene.request.model, scene.seed, answer_bytes.prompt_tokens(scene.request))
        return msgspec.structs.replace(reply, steps=(head, *reply.steps))
    return reply


def rate_limited(scene: Scene) -> Reply:
    failure = Failed(FailureKind.RATE_LIMIT, "Rate limit reached. Try again in 1 second.", 429)
    details = scene.wire.server.retry_details
    if not details:
        return answer_bytes.fail(scene, failure, retry_after="1")
    value: dict[str, Any] = msgspec.json.decode(scene.wire.error_body(failure, ""))
    value["error"]["details"] = details
    return replies.body(_encode(value), status=429, retry_after="1")


def refused(kind: FailureKind, status: int, message: str) -> Callable[[Scene], Reply]:
    """An HTTP error in the protocol's words, always the same."""
    return lambda scene: answer_bytes.fail(scene, Failed(kind, message, status))


def flaky(scene: Scene) -> Reply:
    """Every other attempt at the same request is turned away."""
    return rate_limited(scene) if scene.attempt % 2 else answer_bytes.say(scene, planned(scene))


def html(scene: Scene) -> Reply:
    return replies.body(PAGE, status=502, content_type="text/html")


def garbage(scene: Scene) -> Reply:
    data = b"\x00\xff\xfenot what you asked for\r\n\r\n{]\xc3(" * 8
    return Reply(steps=(data,), content_type=_type(scene))


def blank(scene: Scene) -> Reply:
    return Reply(content_type=_type(scene))


def empty(scene: Scene) -> Reply:
    """A whole answer that says nothing."""
    return answer_bytes.send(scene, [*answer_bytes.opening(scene), *answer_bytes.ending([], End(Stop.END))])


def slow(scene: Scene) -> Reply:
    """A second before anything, then a tenth of one before each event."""
    reply = answer_bytes.say(scene, scene.with_ids(agent.turn(scene.request)))
    paused = tuple(step for each in reply.steps for step in (Wait(0.1), each))
    return msgspec.structs.replace(reply, steps=paused, delay=1.0)


def stalled(scene: Scene) -> Reply:
    """The first words, and then silence."""
    return _never_ending(scene, ["It begins well, ", Wait(FOREVER)])


def hung(scene: Scene) -> Reply:
    """Not even a status line."""
    return msgspec.structs.replace(empty(scene), delay=FOREVER)


def endless(scene: Scene) -> Reply:
    """The same words again and again."""
    return _never_ending(scene, itertools.cycle(["and so on, ", Wait(0.01)]))


def _never_ending(scene: Scene, said: Iterable[str | Wait]) -> Reply:
    if not scene.stream:
        # Servers that think for long send blanks meanwhile, so that nobody hangs up.
        blanks = (step if isinstance(step, Wait) else b" " for step in said)
        return Reply(steps=blanks)
    words = (step if isinstance(step, Wait) else TextDelta(0, step) for step in said)
    events = itertools.chain(answer_bytes.opening(scene), [BlockStart(0, Text())], words)
    return Reply(steps=answer_bytes.frames(scene, events), content_type=replies.STREAM)


def _type(scene: Scene) -> str:
    return replies.STREAM if scene.stream else replies.JSON
