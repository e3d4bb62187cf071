"""The neutral form: what a client reads from an answer, independent of the protocol."""

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypedDict, TypeGuard

Json = dict[str, Any]

LINE_SEPARATORS = "\u2028\u2029\u0085"


class UnreadableError(ValueError):
    """The bytes are not JSON, or not the expected kind of JSON."""


class NeutralCall(TypedDict):
    """A call as the client sees it. `arguments` is a string unless it is a complete JSON object."""

    id: str
    name: str
    arguments: Json | str
    raw: str
    kind: str


class Neutral(TypedDict):
    """An answer in neutral form: the output of `reduce`, and the input of `compare`."""

    text: str
    thinking: str
    refusal: str
    tool_calls: list[NeutralCall]
    stop: str | None
    usage: dict[str, int]
    error: dict[str, str] | None
    id: str | None
    model: str | None
    opaque: list[str]


@dataclass(slots=True)
class ReducedCall:
    """A tool call while an answer is read.

    `complete` is False if the call was visibly cut off. `value` is set if the wire carries the
    arguments as an object (Gemini), not as text.
    """

    id: str
    name: str
    raw: str = ""
    kind: str = "function"
    complete: bool = True
    value: Json | None = None

    def as_dict(self) -> NeutralCall:
        return {
            "id": self.id,
            "name": self.name,
            "arguments": self._arguments(),
            "raw": self.raw,
            "kind": self.kind,
        }

    def _arguments(self) -> Json | str:
        if self.kind != "function" or not self.complete:
            return self.raw
        value = parse_object(self.raw) if self.value is None else self.value
        return self.raw if value is None else value


@dataclass(slots=True)
class ReducedAnswer:
    """An answer while it is read. `as_dict` gives its neutral form."""

    text: str = ""
    thinking: str = ""
    refusal: str = ""
    calls: list[ReducedCall] = field(default_factory=list[ReducedCall])
    stop: str | None = None
    usage: dict[str, int] = field(default_factory=dict[str, int])
    error: dict[str, str] | None = None
    id: str | None = None
    model: str | None = None
    opaque: list[str] = field(default_factory=list[str])
    # An SDK reported the error by an exception (used by the tests that compare with the official SDKs).
    raised: bool = False

    def fail(self, message: str) -> None:
        self.stop = "error"
        self.error = {"message": message}

    def as_dict(self) -> Neutral:
        return {
            "text": self.text,
            "thinking": self.thinking,
            "refusal": self.refusal,
            "tool_calls": [call.as_dict() for call in self.calls],
            "stop": self.stop,
            "usage": self.usage,
            "error": self.error,
            "id": self.id,
            "model": self.model,
            "opaque": self.opaque,
        }


def load(text: str | bytes) -> Any:
    """Strict JSON: no NaN, no Infinity."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise UnreadableError(f"not JSON: {error}") from error


def load_object(text: str | bytes) -> Json:
    value = load(text)
    if not is_object(value):
        raise UnreadableError(f"not a JSON object: {str(text)[:80]}")
    return value


def parse_object(raw: str) -> Json | None:
    """The JSON object in `raw`, or None."""
    try:
        return load_object(raw)
    except UnreadableError:
        return None


def is_object(value: object) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def inner(value: Json, name: str) -> Json:
    """The object in member `name`; empty if the member is missing or null."""
    return value.get(name) or {}


def entries(value: Json, name: str) -> list[Json]:
    """The list in member `name`; empty if the member is missing or null."""
    return value.get(name) or []


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def wire(value: object) -> str:
    """JSON for one line of a stream. Escapes the Unicode separators that some readers take for a line end."""
    text = compact(value)
    for separator in LINE_SEPARATORS:
        text = text.replace(separator, f"\\u{ord(separator):04x}")
    return text


def counts(**given: object) -> dict[str, int]:
    """The given values that are numbers."""
    return {name: value for name, value in given.items() if isinstance(value, int)}


def error_message(error: object) -> str:
    """The message of an error. Some servers send a plain string instead of an object."""
    if is_object(error):
        return str(error.get("message") or "")
    return str(error)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
