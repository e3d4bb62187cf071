"""The small agent that the scripted model plays: it reads the conversation and decides what to do next.

It answers a plain question with words, calls a tool where one is offered that could do what was asked, and
closes with words that quote what the tools answered. It knows nothing and never guesses at random.
"""

from __future__ import annotations

import re

import msgspec

from ..messages import Message, Part, Request, Text, Tool, ToolCall, ToolResult, plain_text
from ..tools.rules.tables import singular, squash, words
from . import values
from .wish import Wish

_json = msgspec.json.Encoder().encode
_WORD = re.compile(r"[^\W_]+")
_MENTION, _IN_NAME, _HINT, _IN_DESCRIPTION, _ENOUGH = 6, 3, 2, 1, 2
_SAY_NOTHING = """
get set use the a an tool mcp this that with from your what when have will into about which used return
given and for are you can how please
"""
_EMPTY_WORDS = frozenset(_SAY_NOTHING.split())
# What people write when they mean a tool of such a name.
_HINTS: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(names.split()), frozenset(said.split()))
    for names, said in (
        ("bash shell exec command terminal repl cmd", "run execute test build install git make command ls"),
        ("read view cat", "read show open view display content"),
        ("write create", "write create save"),
        ("edit replace patch", "edit change replace fix rename patch modify"),
        ("grep search", "search grep find occurrence"),
        ("glob ls list", "list find folder directory"),
        ("fetch web url browse", "fetch download page website http https"),
        ("todo plan", "todo plan step"),
    )
)


# Claude Code slips these in, alone or before the words of its user.
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)


def turn(
    request: Request, *, eager: bool = False, generous: bool = False, deaf: bool = False
) -> tuple[Part, ...]:
    """The parts of the next answer; calls have no ids yet.

    `eager` calls some tool even when nothing asks for one, `generous` says optional arguments as well,
    `deaf` takes no notice of what the tools answered and asks for the same again.
    """
    results = heard(request)
    if results and not deaf:
        return (Text(closing(request, results)),)
    text = asked(request)
    tool = _choice(request, text, eager=eager or deaf)
    if tool is not None:
        return (Text(f"I will use {tool.name} for that.\n"), call(tool, text, generous=generous))
    return (Text(_plain_answer(request, text)),)


def call(tool: Tool, text: str, *, generous: bool = False, variant: int = 0) -> ToolCall:
    """A call of `tool` for what the user asked."""
    if tool.kind == "custom":
        said = _freeform(tool, text)
        return ToolCall(id="", name=tool.name, arguments=said, kind="custom", namespace=tool.namespace)
    said = _json(values.arguments(tool.parameters, text, generous=generous, variant=variant)).decode()
    return ToolCall(id="", name=tool.name, arguments=said, namespace=tool.namespace)


def named(request: Request, call: ToolCall) -> Tool:
    """The tool that `call` is for."""
    return next(t for t in request.tools if (t.name, t.namespace) == (call.name, call.namespace))


def asked(request: Request) -> str:
    """What the user wrote last, without the reminders that agents slip in."""
    for message in reversed(request.messages):
        if message.role != "user":
            continue
        texts = [_REMINDER.sub("", p.text).strip() for p in message.parts if isinstance(p, Text)]
        said = [text for text in texts if text]
        if said:
            return said[-1]
    return ""


def heard(request: Request) -> list[ToolResult]:
    """What tools answered since the model spoke last."""
    parts = (part for message in _since_last_answer(request) for part in message.parts)
    return [part for part in parts if isinstance(part, ToolResult)]


def closing(request: Request, results: list[ToolResult]) -> str:
    """Words that quote the results."""
    calls = {p.id: p.name for m in request.messages for p in m.parts if isinstance(p, ToolCall)}
    lines: list[str] = []
    for result in results:
        name = result.name or calls.get(result.call_id, "the tool")
        said = plain_text(result.parts, "\n").strip()[:400] or "nothing"
        lines.append(f"{name} {'failed' if result.is_error else 'answered'}: “{said}”")
    return "\n".join((*lines, "That is all there is to do."))


def _since_last_answer(request: Request) -> list[Message]:
    found: list[Message] = []
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        found.append(message)
    return found[::-1]


def _choice(request: Request, text: str, *, eager: bool) -> Tool | None:
    """The offered tool that fits best what was asked, where one fits or one must be called."""
    wanted = request.settings.tool_choice
    mode = "auto" if wanted is None else wanted.mode
    tools = [tool for tool in request.tools if tool.kind != "hosted"]
    if wanted is not None and wanted.allowed is not None:
        tools = [tool for tool in tools if tool.name in wanted.allowed]
    if mode == "named" and wanted is not None:
        tools = [tool for tool in tools if tool.name == wanted.name]
    if mode == "none" or not tools:
        return None
    said = frozenset(singular(word.casefold()) for word in _WORD.findall(text))
    best = max(tools, key=lambda tool: _fit(tool, text, said))
    must = eager or mode in ("required", "named")
    return best if must or _fit(best, text, said) >= _ENOUGH else None


def _fit(tool: Tool, text: str, said: frozenset[str]) -> int:
    """How well the tool's name and the beginning of its description fit the user's words."""
    name = words(tool.name)
    points = _IN_NAME * len((name & said) - _EMPTY_WORDS)
    if len(tool.name) > 2 and re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", text, re.IGNORECASE):
        points += _MENTION
    points += sum(_HINT * len(hints & said) for names, hints in _HINTS if names & name)
    about = (tool.description or "").partition(".")[0][:160]
    described = frozenset(singular(w.casefold()) for w in _WORD.findall(about) if len(w) > 3)
    return points + _IN_DESCRIPTION * len((described & said) - _EMPTY_WORDS)


def _plain_answer(request: Request, text: str) -> str:
    wanted = request.settings.format
    if wanted is not None:
        return _json(values.document(wanted.schema, text)).decode()
    said = " ".join(text.split())[:120] or "nothing at all"
    tools = [tool.name for tool in request.tools if tool.kind != "hosted"][:6]
    able = f"I can call {', '.join(tools)} when you ask for what they do." if tools else ""
    able = able or "Offer me tools, and I will call one when you ask for what it does."
    return f"You said: “{said}”. I am a scripted model: no key, no network, no knowledge. {able}"


def _freeform(tool: Tool, text: str) -> str:
    if "patch" in squash(tool.name):
        return "*** Begin Patch\n*** Add File: hello.txt\n+Hello.\n*** End Patch\n"
    return Wish(text).words()
