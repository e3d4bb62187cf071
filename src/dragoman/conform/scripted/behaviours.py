"""The table of scripted models. The model's name chooses its behaviour."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...model.events import FailureKind, Stop
from ...model.messages import Part, Refusal, Request, Text, ToolCall, plain_text
from ...protocols.facts import Server
from ...protocols.registry import PROTOCOLS
from . import agent, answer_bytes, broken_answers, broken_calls, opaque_reasoning, replies
from .answer_bytes import ReplyContext
from .interleaving import interleaved
from .replies import Reply

BreakCall = Callable[[ToolCall, Request], list[Part]]


def _same_everywhere(server: Server) -> str:
    return ""


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One scripted model."""

    name: str
    description: str
    play: Callable[[ReplyContext], Reply]
    well_formed: bool = False
    """Its answers are legal in every protocol."""
    differs: Callable[[Server], str] = _same_everywhere
    """Why a protocol with such servers cannot show the misbehaviour, or not in this way; else empty."""

    @property
    def exceptions(self) -> dict[str, str]:
        """Protocols that show the misbehaviour differently, or not at all, and why."""
        why = {name: self.differs(record.server) for name, record in PROTOCOLS.items()}
        return {name: reason for name, reason in why.items() if reason}


def _good(context: ReplyContext) -> Reply:
    return answer_bytes.encode_reply(context, broken_answers.planned(context, eager=False))


def _breaks(break_call: BreakCall, *, textual: bool = False) -> Callable[[ReplyContext], Reply]:
    """A model that damages its calls with `break_call`.

    `textual` damage needs text arguments on the wire. Protocols with objects send the call unchanged.
    """

    def play(context: ReplyContext) -> Reply:
        parts = broken_answers.planned(context, with_optional=True)
        server = context.wire.server
        objects = server.whole_calls if context.stream else server.objects_in_bodies
        return answer_bytes.encode_reply(
            context, parts if textual and objects else _each_call(context, parts, break_call)
        )

    return play


def _each_call(context: ReplyContext, parts: list[Part], break_call: BreakCall) -> list[Part]:
    broken = [break_call(part, context.request) if isinstance(part, ToolCall) else [part] for part in parts]
    return [part for several in broken for part in several]


def _fragments(context: ReplyContext) -> Reply:
    reply = answer_bytes.encode_reply(context, broken_answers.planned(context), piece=2)
    return msgspec.structs.replace(reply, steps=tuple(replies.in_pieces(reply.steps, 7)))


def _parallel(context: ReplyContext) -> list[Part]:
    return _each_call(context, broken_answers.planned(context), broken_calls.with_second_call)


def _invalid_at_first(context: ReplyContext) -> Reply:
    # OpenAI Chat has no error flag on a tool result: only its text shows the failure.
    corrected = any(
        r.is_error or "not valid" in plain_text(r.parts) for r in agent.tool_results(context.request)
    )
    parts = broken_answers.planned(context, ignore_results=corrected)
    return answer_bytes.encode_reply(
        context, parts if corrected else _each_call(context, parts, broken_calls.incomplete)
    )


def _loop(context: ReplyContext) -> Reply:
    return answer_bytes.encode_reply(
        context, broken_answers.planned(context, eager=False, ignore_results=True)
    )


def _think(context: ReplyContext) -> Reply:
    tagged = Text(f"<think>\n{opaque_reasoning.THOUGHT}\n</think>\n\n")
    first, *rest = broken_answers.planned(context, eager=False)
    text = tagged.text + (first.text if isinstance(first, Text) else "")
    return answer_bytes.encode_reply(context, [Text(text), *rest])


def _thinking(context: ReplyContext) -> Reply:
    return answer_bytes.encode_reply(
        context, opaque_reasoning.thoughtful(context, broken_answers.planned(context, eager=False))
    )


def _sealed(context: ReplyContext) -> Reply:
    objection = opaque_reasoning.objection(context)
    if objection is not None:
        return broken_answers.refused(FailureKind.INVALID_REQUEST, 400, objection)(context)
    return _thinking(context)


def _refusal(context: ReplyContext) -> Reply:
    return answer_bytes.encode_reply(context, [Refusal("I can't help with that.")], stop=Stop.REFUSAL)


def _filter(context: ReplyContext) -> Reply:
    return answer_bytes.encode_reply(context, [Text("Step one: take the")], stop=Stop.FILTER)


def _as_objects(server: Server) -> str:
    if server.whole_calls:
        return _OBJECTS
    return f"only in streams: in a body {_OBJECTS}" if server.objects_in_bodies else ""


def _whole(server: Server) -> str:
    return "a call arrives in one piece" if server.whole_calls else ""


def _left_out(server: Server) -> str:
    if server.whole_calls:
        return "the cut call is missing"
    return "" if server.keeps_cut_calls else "in a body the cut call is missing"


_OBJECTS = "arguments are an object on this wire, not text that could be invalid"
_UNAUTHORIZED = broken_answers.refused(
    FailureKind.AUTHENTICATION, 401, "The key is not valid (auth_unavailable)"
)
_BROKEN = broken_answers.refused(FailureKind.SERVER, 500, "Internal server error")
_UNAVAILABLE = broken_answers.refused(FailureKind.OVERLOADED, 503, "The service is temporarily unavailable")


def _row(
    name: str,
    description: str,
    play: Callable[[ReplyContext], Reply],
    differs: Callable[[Server], str] = _same_everywhere,
) -> Behaviour:
    return Behaviour(name=name, description=description, play=play, differs=differs)


def _fine(name: str, description: str, play: Callable[[ReplyContext], Reply]) -> Behaviour:
    return Behaviour(name=name, description=description, play=play, well_formed=True)


_ALL = (
    _fine("demo", "answers with text, calls a matching tool, then quotes its result", _good),
    _fine(
        "demo-parallel", "makes two calls in one turn", lambda s: answer_bytes.encode_reply(s, _parallel(s))
    ),
    _fine("demo-thinking", "sends reasoning in the protocol's form, with signatures", _thinking),
    _fine(
        "demo-sealed",
        "sends signed reasoning, and refuses a history with lost or foreign signatures",
        _sealed,
    ),
    _fine("demo-refusal", "refuses to answer", _refusal),
    _fine("demo-filter", "is stopped by a content filter", _filter),
    _fine("demo-loop", "repeats the same call, whatever the tool answers", _loop),
    _fine(
        "demo-slow",
        "waits a second before its answer, and 0.1 seconds before each event",
        broken_answers.slow,
    ),
    _row(
        "demo-fragments",
        "sends arguments two characters at a time, and splits frames",
        _fragments,
        _whole,
    ),
    _row(
        "demo-misnamed",
        "gives arguments wrong names: `prompt` for `command`",
        _breaks(broken_calls.misnamed),
    ),
    _row("demo-miscased", "writes the tool's name in the wrong case", _breaks(broken_calls.miscased)),
    _row(
        "demo-stringly",
        "sends numbers, booleans and arrays as strings",
        _breaks(broken_calls.stringly),
    ),
    _row("demo-wrapped", "wraps the arguments in another object", _breaks(broken_calls.wrapped)),
    _row(
        "demo-syntax",
        "sends arguments that are almost JSON",
        _breaks(broken_calls.almost_json, textual=True),
        _as_objects,
    ),
    _row(
        "demo-fenced",
        "sends arguments in a Markdown code fence",
        _breaks(broken_calls.fenced, textual=True),
        _as_objects,
    ),
    _row("demo-invalid", "omits a required argument, until the client reports the error", _invalid_at_first),
    _row("demo-invented", "calls a tool that was not offered", _breaks(broken_calls.invented)),
    _row(
        "demo-ghost",
        "makes a call without a name before the real one",
        _breaks(broken_calls.with_ghost_call),
    ),
    _row("demo-duplicate", "makes the same call twice", _breaks(broken_calls.sent_twice)),
    _row(
        "demo-interleaved",
        "makes two calls whose fragments interleave",
        lambda s: interleaved(s, _parallel(s)),
        _whole,
    ),
    _row("demo-leak", "writes its call as text, in markup", _breaks(broken_calls.leaked)),
    _row("demo-think", "writes its reasoning as text, in think tags", _think),
    _row(
        "demo-length",
        "runs out of tokens in the middle of a call",
        broken_answers.length,
        _left_out,
    ),
    _row("demo-empty", "sends a complete answer without content", broken_answers.empty),
    _row("demo-cut", "closes the connection in the middle of a call", broken_answers.cut),
    _row("demo-reset", "resets the connection in the middle of a character", broken_answers.reset),
    _row("demo-error", "reports an error in the middle of a call", broken_answers.error),
    _row(
        "demo-overloaded",
        "reports an overload with status 200, after an empty first event",
        broken_answers.overloaded,
    ),
    _row("demo-ratelimit", "answers 429 with Retry-After", broken_answers.rate_limited),
    _row(
        "demo-flaky", "answers the first attempt with 429, and the second one normally", broken_answers.flaky
    ),
    _row("demo-unauthorized", "answers 401", _UNAUTHORIZED),
    _row("demo-500", "answers 500", _BROKEN),
    _row("demo-503", "answers 503", _UNAVAILABLE),
    _row("demo-html", "answers 502 with an HTML page", broken_answers.html),
    _row("demo-garbage", "sends bytes that are not an answer", broken_answers.garbage),
    _row("demo-blank", "answers 200 with an empty body", broken_answers.blank),
    _row("demo-stall", "starts an answer, then sends nothing more", broken_answers.stalled),
    _row("demo-hang", "never begins", broken_answers.hung),
    _row("demo-endless", "never ends", broken_answers.endless),
)

BEHAVIOURS: dict[str, Behaviour] = {behaviour.name: behaviour for behaviour in _ALL}
