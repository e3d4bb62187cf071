"""Token counts: read from `usageMetadata`, and written as it."""

from __future__ import annotations

import msgspec

from ....model.events import Usage
from ...common.fields import Obj
from . import wire
from .left import members_of

# The counts that `totalTokenCount` adds up. Cached tokens are part of the prompt.
_SUMMED = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")

_decode = msgspec.json.Decoder(wire.UsageMetadata).decode


def read_usage(usage: wire.UsageMetadata) -> Usage:
    prompt, cached = _count(usage.promptTokenCount), _count(usage.cachedContentTokenCount)
    candidates, thoughts = _count(usage.candidatesTokenCount), _count(usage.thoughtsTokenCount)
    # Gemini counts differently from the neutral usage: `candidatesTokenCount` excludes thoughts, and
    # `promptTokenCount` includes cached tokens.
    counted = candidates is not None or thoughts is not None
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0)),
        cache_read=cached,
        output=(candidates or 0) + (thoughts or 0) if counted else None,
        reasoning=thoughts,
        tool_prompt=_count(usage.toolUsePromptTokenCount),
    )


def _count(value: wire.Count) -> int | None:
    return value if isinstance(value, int) else None


def usage_object(usage: Usage) -> Obj:
    reasoning = usage.reasoning or 0
    output = usage.output or 0
    value: Obj = {
        "promptTokenCount": usage.prompt,
        # Google counts thoughts apart from the candidates.
        "candidatesTokenCount": max(0, output - reasoning),
        "totalTokenCount": usage.prompt + max(output, reasoning) + (usage.tool_prompt or 0),
    }
    if usage.cache_read is not None:
        value["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning is not None:
        value["thoughtsTokenCount"] = reasoning
    if usage.tool_prompt is not None:
        value["toolUsePromptTokenCount"] = usage.tool_prompt
    return value


def counted(sent: msgspec.Raw | None, usage: Usage) -> msgspec.Raw | Obj:
    """The upstream's `usageMetadata`, if its counts are `usage`. Otherwise its counts are replaced."""
    if sent is None:
        return usage_object(usage)
    if _says(sent, usage):
        return sent
    others = {key: value for key, value in members_of(sent).items() if key not in wire.COUNTS}
    return others | usage_object(usage)


def _says(sent: msgspec.Raw, usage: Usage) -> bool:
    try:
        counts = _decode(sent)
    except ValueError:
        return False  # a count is not a number
    sizes = msgspec.structs.asdict(counts)
    if any(size is None or (size is not msgspec.UNSET and size < 0) for size in sizes.values()):
        return False
    summed = sum(_count(sizes[name]) or 0 for name in _SUMMED)
    return read_usage(counts) == usage and counts.totalTokenCount in (msgspec.UNSET, summed)
