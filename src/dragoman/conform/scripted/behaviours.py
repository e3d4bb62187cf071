"""The scripted models: one table. The model's name says how it behaves."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...model.events import FailureKind, Stop
from ...model.messages import Part, Refusal, Request, Text, ToolCall, plain_text
from ...protocols.facts import Server
from ...protocols.registry import PROTOCOLS
from . import agent, answer_bytes, broken_answers, broken_calls, opaque_reasoning, replies
from .answer_bytes import Scene
from .interleaving import interleaved
from .replies import Reply

Spoil = Callable[[ToolCall, Request], list[Part]]


def _nowhere(server: Server) -> str:
    return ""


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One scripted model."""

    name: str
    description: str
    play: Callable[[Scene], Reply]
    well_formed: bool = False
    """Every client of the protocol takes its answers as they are."""
    differs: Callable[[Server], str] = _nowhere
    """Why the misbehaviour cannot be shown, or shows otherwise, in a protocol whose servers are like this."""

    @property
    def unlike(self) -> dict[str, str]:
        """Protocols in which the misbehaviour cannot be shown, or shows otherwise, and why."""
        why = {name: self.differs(record.server) for name, record in PROTOCOLS.items()}
        return {name: reason for name, reason in why.items() if reason}


def _good(scene: Scene) -> Reply:
    return answer_bytes.say(scene, scene.with_ids(agent.turn(scene.request)))


def _spoilt(spoil: Spoil, *, textual: bool = False) -> Callable[[Scene], Reply]:
    """A model that does `spoil` to its calls; `textual` spoils what is no text everywhere."""

    def play(scene: Scene) -> Reply:
        parts = scene.with_ids(agent.turn(scene.request, eager=True, generous=True))
        server = scene.wire.server
        objects = server.whole_calls if scene.stream else server.objects_in_bodies
        return answer_bytes.say(scene, parts if textual and objects else _each_call(scene, parts, spoil))

    return play


def _each_call(scene: Scene, parts: list[Part], spoil: Spoil) -> list[Part]:
    spoilt = [spoil(part, scene.request) if isinstance(part, ToolCall) else [part] for part in parts]
    return [part for several in spoilt for part in several]


def _fragments(scene: Scene) -> Reply:
    reply = answer_bytes.say(scene, broken_answers.planned(scene), piece=2)
    return msgspec.structs.replace(reply, steps=tuple(replies.in_pieces(reply.steps, 7)))


def _parallel(scene: Scene) -> list[Part]:
    return _each_call(scene, broken_answers.planned(scene), broken_calls.twofold)


def _until_told(scene: Scene) -> Reply:
    # Chat has no mark for a failed call: only the words tell.
    told = any(r.is_error or "not valid" in plain_text(r.parts) for r in agent.heard(scene.request))
    parts = scene.with_ids(agent.turn(scene.request, eager=True, deaf=told))
    return answer_bytes.say(scene, parts if told else _each_call(scene, parts, broken_calls.incomplete))


def _loop(scene: Scene) -> Reply:
    return answer_bytes.say(scene, scene.with_ids(agent.turn(scene.request, deaf=True)))


def _think(scene: Scene) -> Reply:
    tagged = Text(f"<think>\n{opaque_reasoning.THOUGHT}\n</think>\n\n")
    first, *rest = scene.with_ids(agent.turn(scene.request))
    text = tagged.text + (first.text if isinstance(first, Text) else "")
    return answer_bytes.say(scene, [Text(text), *rest])


def _thinking(scene: Scene) -> Reply:
    return answer_bytes.say(
        scene, opaque_reasoning.thoughtful(scene, scene.with_ids(agent.turn(scene.request)))
    )


def _sealed(scene: Scene) -> Reply:
    objection = opaque_reasoning.objection(scene)
    if objection is not None:
        return broken_answers.refused(FailureKind.INVALID_REQUEST, 400, objection)(scene)
    return _thinking(scene)


def _refusal(scene: Scene) -> Reply:
    return answer_bytes.say(scene, [Refusal("I can't help with that.")], stop=Stop.REFUSAL)


def _filter(scene: Scene) -> Reply:
    return answer_bytes.say(scene, [Text("Step one: take the")], stop=Stop.FILTER)


def _as_objects(server: Server) -> str:
    if server.whole_calls:
        return _OBJECTS
    return f"only in streams: in a body {_OBJECTS}" if server.objects_in_bodies else ""


def _whole(server: Server) -> str:
    return "a call comes whole, in one part" if server.whole_calls else ""


def _left_out(server: Server) -> str:
    if server.whole_calls:
        return "the cut call is left out"
    return "" if server.keeps_cut_calls else "in a body the cut call is left out"


_OBJECTS = "arguments are an object on this wire, never text that could be wrong"
_UNAUTHORIZED = broken_answers.refused(
    FailureKind.AUTHENTICATION, 401, "The key is not valid (auth_unavailable)"
)
_BROKEN = broken_answers.refused(FailureKind.SERVER, 500, "Internal server error")
_UNAVAILABLE = broken_answers.refused(FailureKind.OVERLOADED, 503, "The service is temporarily unavailable")


def _row(
    name: str,
    description: str,
    play: Callable[[Scene], Reply],
    differs: Callable[[Server], str] = _nowhere,
) -> Behaviour:
    return Behaviour(name=name, description=description, play=play, differs=differs)


def _fine(name: str, description: str, play: Callable[[Scene], Reply]) -> Behaviour:
    return Behaviour(name=name, description=description, play=play, well_formed=True)


_ALL = (
    _fine("demo", "answers in words, calls a tool where one fits, then quotes its result", _good),
    _fine("demo-parallel", "makes two calls in one turn", lambda s: answer_bytes.say(s, _parallel(s))),
    _fine("demo-thinking", "reasons in the protocol's own way, with signatures", _thinking),
    _fine("demo-sealed", "reasons, and refuses a history whose signatures are lost or not its own", _sealed),
    _fine("demo-refusal", "refuses to answer", _refusal),
    _fine("demo-filter", "is stopped by a content filter", _filter),
    _fine("demo-loop", "makes the same call again and again, whatever the tool answers", _loop),
    _fine("demo-slow", "takes a second to begin and a tenth for each event", broken_answers.slow),
    _row(
        "demo-fragments",
        "sends arguments two characters at a time, and tears frames apart",
        _fragments,
        _whole,
    ),
    _row(
        "demo-misnamed", "gives arguments wrong names: `prompt` for `command`", _spoilt(broken_calls.misnamed)
    ),
    _row("demo-miscased", "writes the tool's name in the wrong case", _spoilt(broken_calls.miscased)),
    _row("demo-stringly", "sends numbers, booleans and arrays as strings", _spoilt(broken_calls.stringly)),
    _row("demo-wrapped", "wraps the arguments in another object", _spoilt(broken_calls.wrapped)),
    _row(
        "demo-syntax",
        "writes arguments that are almost JSON",
        _spoilt(broken_calls.almost_json, textual=True),
        _as_objects,
    ),
    _row(
        "demo-fenced",
        "puts arguments into a Markdown fence",
        _spoilt(broken_calls.fenced, textual=True),
        _as_objects,
    ),
    _row("demo-invalid", "leaves out a required argument, until it is told", _until_told),
    _row("demo-invented", "calls a tool that was not offered", _spoilt(broken_calls.invented)),
    _row("demo-ghost", "makes a call without a name before the real one", _spoilt(broken_calls.ghostly)),
    _row("demo-duplicate", "makes the same call twice", _spoilt(broken_calls.doubled)),
    _row(
        "demo-interleaved",
        "makes two calls whose pieces interleave",
        lambda s: interleaved(s, _parallel(s)),
        _whole,
    ),
    _row("demo-leak", "writes its call into the text, as markup", _spoilt(broken_calls.leaked)),
    _row("demo-think", "puts its reasoning into the text, between think tags", _think),
    _row(
        "demo-length",
        "runs out of tokens in the middle of a call",
        broken_answers.length,
        _left_out,
    ),
    _row("demo-empty", "gives a whole answer that says nothing", broken_answers.empty),
    _row("demo-cut", "closes the connection in the middle of a call", broken_answers.cut),
    _row("demo-reset", "resets the connection in the middle of a character", broken_answers.reset),
    _row("demo-error", "reports an error in the middle of a call", broken_answers.error),
    _row(
        "demo-overloaded",
        "reports an overload inside a 200, after an empty first event",
        broken_answers.overloaded,
    ),
    _row("demo-ratelimit", "answers 429 with Retry-After", broken_answers.rate_limited),
    _row("demo-flaky", "answers 429 at the first attempt, and well at the second", broken_answers.flaky),
    _row("demo-unauthorized", "answers 401", _UNAUTHORIZED),
    _row("demo-500", "answers 500", _BROKEN),
    _row("demo-503", "answers 503", _UNAVAILABLE),
    _row("demo-html", "answers 502 with an HTML page", broken_answers.html),
    _row("demo-garbage", "sends bytes that are no answer at all", broken_answers.garbage),
    _row("demo-blank", "answers 200 with an empty body", broken_answers.blank),
    _row("demo-stall", "begins, and then falls silent", broken_answers.stalled),
    _row("demo-hang", "never begins", broken_answers.hung),
    _row("demo-endless", "never ends", broken_answers.endless),
)

BEHAVIOURS: dict[str, Behaviour] = {behaviour.name: behaviour for behaviour in _ALL}
