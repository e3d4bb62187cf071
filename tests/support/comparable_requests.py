"""The common content of a request in two protocols, in one plain form for comparison (law 7).

`meant` is that form of a request before it is written, `heard` that of the upstream's request. Emulations of
the mapping matrix are undone here: a system message in the middle that became marked user text, an error flag
that became a word, an image of a tool that became the user's.
"""

import re
from typing import Any

import msgspec

from dragoman.model.messages import (
    Media,
    Message,
    Refusal,
    Request,
    Text,
    ToolCall,
    ToolResult,
    leading_system,
)
from dragoman.protocols.base import Outgoing, WireProtocol
from dragoman.protocols.common import call_ids as ids
from dragoman.protocols.common import reasoning_effort
from dragoman.protocols.common.call_ids import IdRule
from dragoman.protocols.common.tool_names import ToolNames

Json = dict[str, Any]
Identity = tuple[str | None, str]

_ERROR = "[error] "
_ELSEWHERE = re.compile(r"\n*\[\w+: in the next user message\]|From the result of the tool call \S+:\n*")
_BUCKETS = {"minimal": "low", "xhigh": "high", "max": "high"}
# Values that need not be sent: every model has them by default, and some models refuse the field.
DEFAULTS = {"temperature": 1, "top_p": 1}
# Notices that explain a different setting.
EXCUSES = {
    "max-tokens-raised": "max_tokens",
    "max-tokens-lowered": "max_tokens",
    "temperature-dropped": "temperature",
    "temperature-clamped": "temperature",
    "top-p-dropped": "top_p",
    "json-mode-emulated": "format",
    "reasoning-dropped": "effort",
    "effort-raised": "effort",
    "effort-lowered": "effort",
    "forced-choice-downgraded": "choice",
    "parallel-dropped": "serial",
}


class Reader:
    """One side of the comparison."""

    def __init__(self, request: Request, names: ToolNames, ids: IdRule | None) -> None:
        self.request = request
        self._names = names
        self._ids = ids
        """None: the ids are the upstream's already, and so are the names."""
        self._wrapped: set[str] = set()

    def conversation(self) -> list[Json]:
        messages = self.request.messages
        leading = leading_system(messages)
        turns: list[Json] = []
        for message in messages[leading:]:
            role = "assistant" if message.role == "assistant" else "user"
            if not turns or turns[-1]["role"] != role:
                turns.append({"role": role, "text": [], "images": [], "calls": [], "results": {}})
            self._add(message, turns[-1])
        for turn in turns:
            turn["text"] = _ELSEWHERE.sub("", "\n\n".join(turn["text"])).strip()
            turn["images"].sort()  # results may be reordered to match their calls
        return [turn for turn in turns if any(turn[k] for k in ("text", "images", "calls", "results"))]

    def _add(self, message: Message, turn: Json) -> None:
        texts: list[str] = []
        for part in message.parts:
            match part:
                case Text(text) | Refusal(text):
                    texts += [text] if text.strip() else []
                case Media():
                    turn["images"].append(_image(part))
                case ToolCall():
                    turn["calls"].append(self._call(part))
                case ToolResult():
                    # If a result cannot hold an image, it is in the user's message.
                    turn["images"] += [_image(p) for p in part.parts if isinstance(p, Media)]
                    turn["results"][self._id(part.call_id)] = _result(part)
                case _:
                    pass
        if message.role in ("system", "developer") and texts:
            texts = [f"<system>\n{_joined(texts)}\n</system>"]
        turn["text"] += texts

    def _id(self, id: str) -> str:
        return ids.for_upstream(id, self._ids) if self._ids else id

    def _call(self, call: ToolCall) -> Json:
        identity, wrapped = self.identity(call.name, call.namespace)
        value: Any = call.arguments
        if call.kind == "function":
            value = msgspec.json.decode(call.arguments or "{}")
            value = value["input"] if wrapped and self._ids is None else value
        return {"id": self._id(call.id), "tool": identity, "arguments": value}

    def identity(self, name: str, namespace: str | None) -> tuple[Identity, bool]:
        """The identity of the client's tool, the same on both sides."""
        if self._ids is not None:
            return (namespace, name), False
        called = self._names.called(name, namespace)
        assert called is not None, f"{namespace}/{name} is not one of the tools that were sent"
        return (called.tool.namespace, called.tool.name), called.wrapped

    def tools(self) -> dict[Identity, Any]:
        own = (tool for tool in self.request.tools if tool.kind != "hosted")
        return {self.identity(tool.name, tool.namespace)[0]: tool for tool in own}

    def settings(self, stop: tuple[str, ...] = ()) -> Json:
        settings = self.request.settings
        effort = reasoning_effort.effort(settings.reasoning)
        wanted = settings.format
        choice = self._choice()
        return {
            "max_tokens": settings.max_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "stop": sorted({*settings.stop, *stop}),
            "effort": _BUCKETS.get(effort or "", effort),
            "format": wanted and (wanted.kind, sorted((wanted.schema or {}).get("properties", ()))),
            # Without tools there are no parallel calls.
            "serial": settings.parallel_tool_calls is False and choice[0] != "none",
            "choice": choice,
            "stream": self.request.stream,
        }

    def _choice(self) -> tuple[str, list[Identity]]:
        """The tool choice. A list with one tool equals its name."""
        choice = self.request.settings.tool_choice
        everything = sorted(self.tools(), key=str)
        if choice is None or not everything:
            return "auto", everything
        if choice.mode == "none":
            return "none", []
        if choice.mode == "named":
            return "required", [self.identity(choice.name or "", choice.namespace)[0]]
        if choice.allowed is None:
            return choice.mode, everything
        return choice.mode, sorted((self.identity(n, None)[0] for n in choice.allowed), key=str)

    def system(self) -> str:
        leading = self.request.messages[: leading_system(self.request.messages)]
        return _joined([p.text for m in leading for p in m.parts if isinstance(p, Text) and p.text])


def meant(request: Request, outgoing: Outgoing, upstream: WireProtocol) -> Reader:
    return Reader(request, outgoing.names, upstream.ids)


def heard(request: Request, outgoing: Outgoing) -> Reader:
    return Reader(request, outgoing.names, None)


def _joined(texts: list[str]) -> str:
    return "\n\n".join(texts)


def _image(media: Media) -> tuple[str, ...]:
    return media.kind, media.media_type, media.data or media.url or ""


def _result(result: ToolResult) -> Json:
    text = _ELSEWHERE.sub("", _joined([p.text for p in result.parts if isinstance(p, Text) and p.text]))
    failed = result.is_error or text.startswith(_ERROR)
    return {"text": text.removeprefix(_ERROR), "failed": failed}
