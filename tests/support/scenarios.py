"""The content of the sample answers, once for all protocols. Each protocol renders it."""

from dataclasses import dataclass, field
from typing import Any

from dragoman.conform.shape import Json, ReducedCall


@dataclass(frozen=True, slots=True)
class Text:
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning with its opaque data. Without pieces it is hidden reasoning."""

    pieces: tuple[str, ...]
    opaque: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    name: str
    fragments: tuple[str, ...]
    cut: bool = False

    @property
    def raw(self) -> str:
        return "".join(self.fragments)


@dataclass(frozen=True, slots=True)
class CustomCall:
    """A freeform call: its input is text, not JSON."""

    name: str
    pieces: tuple[str, ...]

    @property
    def raw(self) -> str:
        return "".join(self.pieces)


Part = Text | Refusal | Thinking | ToolCall | CustomCall


@dataclass(frozen=True, slots=True)
class Usage:
    input: int = 57
    output: int = 23
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    parts: tuple[Part, ...]
    stop: str
    usage: Usage = field(default_factory=Usage)
    error: str | None = None
    interleaved: bool = False

    @property
    def has_cut_call(self) -> bool:
        return any(isinstance(part, ToolCall) and part.cut for part in self.parts)

    @property
    def has_custom_call(self) -> bool:
        return any(isinstance(part, CustomCall) for part in self.parts)

    def joined(self, *kinds: type[Text] | type[Refusal] | type[Thinking]) -> str:
        return "".join("".join(part.pieces) for part in self.parts if isinstance(part, kinds))

    def opaque(self) -> list[str]:
        return [part.opaque for part in self.parts if isinstance(part, Thinking)]

    def calls(self, ids: list[str]) -> list[ReducedCall]:
        """The calls in neutral form, with the ids of a protocol."""
        found: list[ReducedCall] = []
        for part in self.parts:
            if isinstance(part, ToolCall):
                call = ReducedCall(ids[len(found)], part.name, part.raw, complete=not part.cut)
                found.append(call)
            elif isinstance(part, CustomCall):
                found.append(ReducedCall(ids[len(found)], part.name, part.raw, "custom"))
        return found


def _tool(name: str, description: str, required: list[str], **properties: Any) -> Json:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": schema}


# The tools that the calls below are for, in the form the corpus declares tools.
TOOLS: list[Json] = [
    _tool(
        "get_weather",
        "Current weather for a city",
        ["city"],
        city={"type": "string"},
        unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
    ),
    _tool(
        "read_file",
        "Read a file",
        ["path"],
        path={"type": "string"},
        limit={"type": "integer"},
    ),
    _tool(
        "store",
        "Keep a record",
        ["key"],
        key={"type": "integer"},
        note={"type": "string"},
        nested={"type": "object"},
    ),
    _tool("list_sessions", "All open sessions", []),
]
CUSTOM_TOOL = "apply_patch"

_WEATHER = ToolCall("get_weather", ('{"ci', 'ty": "Par', 'is", "unit": "cel', 'sius"}'))
_WEATHER_CUT = ToolCall("get_weather", ('{"city": "Par', 'is", "un'), cut=True)
_READ = ToolCall("read_file", ('{"path": "src/', 'app.py"', ', "limit": 200}'))
_SECOND_WEATHER = ToolCall("get_weather", ('{"city": ', '"Rome"}'))
_STORE = ToolCall(
    "store",
    (
        '{"key": 12345678901234',
        '567890, "note": "caf\\u00e9 \\"x\\"\\n\\u2028',
        '\\ud83d\\ude00 \\\\d+ 東京", "nested": {"a": [1, 2.5, ',
        'null, true], "b": {}}}',
    ),
)
_THOUGHT = Thinking(
    ("The user wants the weather ", "in Paris, so ", "the tool is due."),
    "RXJjQkNrZ0lDeEFDR0FJaVFKdm1hZ2JyYW5kb20rc2lnbmF0dXJlL2J5dGVz",
)
_HIDDEN = Thinking((), "RW5jcnlwdGVkUmVhc29uaW5nVGhhdFN0YXlzSGlkZGVu")
_HELLO = Text(("Hello! ", "How can I", " help you today?"))
_PATCH = CustomCall(
    CUSTOM_TOOL, ("*** Begin Patch\n", '*** Update File: a.py\n+print("hi', '")\n*** End Patch\n')
)

SCENARIOS: dict[str, Scenario] = {
    "text": Scenario((_HELLO,), "end_turn"),
    "unicode": Scenario(
        (Text(("Grüße, 東京 ", "😀👩‍👩‍👧 a\u2028b\u2029c\u0085d ", '\\ " \t </tool> \x7f')),),
        "end_turn",
    ),
    "tool": Scenario((_WEATHER,), "tool_use"),
    "text_tool": Scenario((Text(("Let me ", "look.")), _WEATHER), "tool_use"),
    "parallel": Scenario((_WEATHER, _READ, _SECOND_WEATHER), "tool_use"),
    "interleaved": Scenario((_WEATHER, _READ, _SECOND_WEATHER), "tool_use", interleaved=True),
    "empty_args": Scenario((ToolCall("list_sessions", ("{}",)),), "tool_use"),
    "values": Scenario((_STORE,), "tool_use"),
    "thinking_tool": Scenario(
        (_THOUGHT, Text(("I will ", "check.")), _WEATHER), "tool_use", Usage(reasoning=14)
    ),
    "redacted": Scenario((_HIDDEN, _HELLO), "end_turn", Usage(reasoning=9)),
    "custom_tool": Scenario((_PATCH,), "tool_use"),
    "usage": Scenario(
        (_THOUGHT, _HELLO),
        "end_turn",
        Usage(input=2200, output=180, cached=1536, cache_write=512, reasoning=120),
    ),
    "max_tokens": Scenario((Text(("Once upon ", "a ti")),), "max_tokens"),
    "max_tokens_tool": Scenario((Text(("Sure.",)), _READ, _WEATHER_CUT), "max_tokens"),
    "stop_sequence": Scenario((Text(("One, ", "two, ")),), "stop_sequence"),
    "error": Scenario((Text(("Partial ", "ans")),), "error", error="Overloaded, try again later"),
    "error_tool": Scenario((_READ, _WEATHER_CUT), "error", error="The connection was reset"),
    "refusal": Scenario((Refusal(("I can't ", "help with that.")),), "refusal"),
    "filter": Scenario((Text(("Step one: ", "take the")),), "content_filter"),
}
ERROR_MESSAGE = "Rate limit reached for this model"
