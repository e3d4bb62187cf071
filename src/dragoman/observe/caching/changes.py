"""The causes of a cache miss: what differs between two turns, each as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from .fingerprints import PromptFingerprint, PromptPart, coarser

# Facts about upstreams: below this many tokens OpenAI and Anthropic cache nothing, but DeepSeek does.
# Anthropic searches at most 20 blocks before a mark for an earlier one.
SHORTEST_PROMPT = 1024
MARK_REACH = 20

_PROMPTS = frozenset({"system", "developer"})
_BREAKING = {
    "reasoning": "the thinking setting",
    "tool_choice": "the tool choice",
    "format": "the output format",
    "cache_key": "the cache key",
    "service_tier": "the service tier or speed",
    "verbosity": "the verbosity",
}
"""Settings that upstreams write into the prompt or choose the cache by, by the neutral name."""


class CacheTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange of a session, as far as the cache is concerned."""

    id: str
    at: float
    """The start: seconds since the epoch."""
    seconds: float = 0.0
    first_event: float | None = None
    target: str | None = None
    """`upstream/model`."""
    credential: str = ""
    """The fingerprint of the upstream's key; empty if it is not known."""
    failed: bool = False
    input: int | None = None
    cached: int | None = None
    prompt: PromptFingerprint | None = None

    @property
    def end(self) -> float:
        return self.at + self.seconds


class Cause(NamedTuple):
    """Why a prompt cache missed: a stable name, and a sentence for people."""

    name: str
    sentence: str


def of_place(before: CacheTurn, after: CacheTurn) -> Iterator[Cause]:
    """Another target or model: it has another cache."""
    old, new = before.target or "", after.target or ""
    models = [prompt.settings.get("model", "") if prompt else "" for prompt in (before.prompt, after.prompt)]
    if old.partition("/")[0] != new.partition("/")[0]:
        yield Cause("target", f"Another target was chosen: {old or 'none'} → {new or 'none'}.")
    elif models[0] != models[1]:
        yield Cause("model", f"The model changed: {models[0]} → {models[1]}.")
    elif before.credential and after.credential and before.credential != after.credential:
        yield Cause("key", "Another key of the upstream was used: its account may have another cache.")


def of_prompt(before: PromptFingerprint, after: PromptFingerprint) -> Iterator[Cause]:
    """Differences in the order in which an upstream reads a prompt."""
    yield from _tools(before.tools, after.tools)
    yield from _system(before, after)
    yield from _settings(before, after)
    yield from _messages(before, after)


def _tools(old: Sequence[PromptPart], new: Sequence[PromptPart]) -> Iterator[Cause]:
    if old == new:
        return
    before, after = ({part.name: part.hash for part in parts} for parts in (old, new))
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    changed = [name for name in after if name in before and before[name] != after[name]]
    if not old:
        yield Cause("tools-added", f"The request now has tools: {_named(added)}.")
    elif not new:
        yield Cause("tools-removed", "The request has no tools any more.")
    elif added or removed:
        if added:
            yield Cause("tool-added", f"New in the tool list: {_named(added)}.")
        if removed:
            yield Cause("tool-removed", f"No longer in the tool list: {_named(removed)}.")
    elif not changed:
        moved = _moved(list(before), list(after))
        yield Cause("tools-reordered", f"The tool list was reordered: {moved} moved.")
    if changed:
        yield Cause("tool-changed", f"The definition of a tool changed: {_named(changed)}.")


def _moved(old: list[str], new: list[str]) -> str:
    """The tool whose removal makes both lists equal; else the first at another place."""
    first = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
    for name in (new[first], old[first]):
        if [one for one in old if one != name] == [one for one in new if one != name]:
            return name
    return f"{new[first]} and others"


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _system(before: PromptFingerprint, after: PromptFingerprint) -> Iterator[Cause]:
    old, new = before.system, after.system
    if _hashes(old) == _hashes(new):
        return
    if not old or not new:
        what = "now has a system prompt" if new else "has no system prompt any more"
        yield Cause("system", f"The request {what}.")
        return
    at = _first_difference(old, new)
    if at is None:
        what = "longer" if len(new) > len(old) else "shorter"
        yield Cause(
            "system-length", f"The system prompt has {len(new)} blocks instead of {len(old)}: it is {what}."
        )
        return
    if sorted(_hashes(old)) == sorted(_hashes(new)):
        yield Cause(
            "system-reordered", f"The blocks of the system prompt were reordered, from block {at + 1} on."
        )
        return
    where = "the system prompt" if len(new) == 1 else f"block {at + 1} of {len(new)} of the system prompt"
    yield _text_cause(before, after, f"s{at}", "system", where, (old[at].size, new[at].size))


def _text_cause(
    before: PromptFingerprint,
    after: PromptFingerprint,
    place: str,
    name: str,
    where: str,
    sizes: tuple[int, int],
) -> Cause:
    """What changed in a text, as far as the loose hashes tell."""
    old, new = before.loose.get(place), after.loose.get(place)
    if old and new and old.dates == new.dates:
        return Cause(f"{name}-date", f"A date or time in {where} changed.")
    if old and new and old.ids == new.ids:
        return Cause(f"{name}-id", f"A number or an id in {where} changed.")
    was, now = sizes
    lengths = f"{was:,} → {now:,} bytes" if was != now else f"{now:,} bytes, as before"
    return Cause(name, f"{where[0].upper()}{where[1:]} changed ({lengths}).")


def _settings(before: PromptFingerprint, after: PromptFingerprint) -> Iterator[Cause]:
    for name in dict.fromkeys([*before.settings, *after.settings]):
        word = next((_BREAKING[part] for part in name.split("/") if part in _BREAKING), None)
        old, new = before.settings.get(name), after.settings.get(name)
        if word is not None and old != new:
            yield Cause(name.partition("/")[0], f"{word[0].upper()}{word[1:]} changed{_values(old, new)}.")


def _values(old: str | None, new: str | None) -> str:
    shown = [value or "not set" for value in (old, new)]
    return "" if any("#" in value for value in shown) else f": {shown[0]} → {shown[1]}"


def _messages(before: PromptFingerprint, after: PromptFingerprint) -> Iterator[Cause]:
    old, new = aligned(before, after)
    at = _first_difference(old, new)
    if at is None:
        return
    per = max(before.per, after.per)
    number = at * per + 1
    here = f"message {number}" if per == 1 else f"one of the messages {number} to {number + per - 1}"
    sizes = old[at].size, new[at].size
    place = f"m{at}" if per == 1 else ""
    loosely = before.loose.get(place), after.loose.get(place)
    alike = loosely[0] is not None and loosely[1] is not None and loosely[0].ids == loosely[1].ids
    if is_prompt(new[at]) and is_prompt(old[at]):
        yield _text_cause(before, after, place, "system", f"the system prompt ({here})", sizes)
    elif alike:
        yield _text_cause(before, after, place, "message", f"{here} ({new[at].name})", sizes)
    elif old[at].hash in _hashes(new[at + 1 :]):
        yield Cause("messages-inserted", f"Something was inserted before {here} of the turn before.")
    elif new[at].hash in _hashes(old[at + 1 :]):
        yield Cause("messages-removed", f"{here[0].upper()}{here[1:]} of the turn before was left out.")
    elif after.count < before.count and not set(_hashes(old[at:])) & set(_hashes(new[at:])):
        replaced = f"{before.count} messages became {after.count}"
        yield Cause("messages-replaced", f"The conversation was compacted or rewound at {here}: {replaced}.")
    else:
        where = f"{here} of {before.count} of the turn before ({old[at].name or 'no role'})"
        yield _text_cause(before, after, "", "message", where, sizes)


def of_time(before: CacheTurn, after: CacheTurn, hit: bool | None) -> Iterator[Cause]:
    """The prompt began as before, and the cache did not help: the marks, the time, and the length."""
    if hit is None:
        yield Cause(
            "not-reported",
            "The prompt begins as it did before. The upstream did not say how much of it was cached.",
        )
        return
    found = [*_known(before, after)]
    yield from found
    if not found:
        used = "used only a part of its cache" if after.cached else "did not use its cache"
        yield Cause(
            "upstream",
            f"The prompt begins as it did before, and the target is the same: the upstream {used}.",
        )


def _known(before: CacheTurn, after: CacheTurn) -> Iterator[Cause]:
    assert before.prompt is not None
    assert after.prompt is not None
    yield from _marks(before.prompt, after.prompt)
    idle, ttl = after.at - before.end, max(before.prompt.ttl, 0)
    if idle > ttl:
        # Only marks say how long a cache is kept. Providers without them keep it for minutes or for hours.
        kept = "the cache is kept" if before.prompt.marks else "some upstreams keep a cache"
        yield Cause("idle", f"Idle for {_duration(idle)}: longer than {kept} ({_duration(ttl)}).")
    if before.failed:
        yield Cause("failed-before", "The turn before failed, so its prompt may not have been cached.")
    began = before.at + (before.seconds if before.first_event is None else before.first_event)
    if after.at < began:
        yield Cause("too-early", "The request was sent before the turn before began to be answered.")
    if after.input is not None and min(after.input, before.input or 0) < SHORTEST_PROMPT:
        yield Cause(
            "short",
            f"The prompt was shorter than {SHORTEST_PROMPT:,} tokens: many upstreams do not cache that.",
        )


def _marks(before: PromptFingerprint, after: PromptFingerprint) -> Iterator[Cause]:
    if before.marks and not after.marks:
        yield Cause("mark-removed", "The request has no cache mark any more.")
        return
    if after.marks and not before.marks:
        yield Cause("mark-missing", "The turn before had no cache mark, so nothing was cached.")
        return
    old, new = _last_message(before.marks), _last_message(after.marks)
    if set(before.marks) == set(after.marks):
        return
    if new < old:
        yield Cause("mark-moved", f"The last cache mark moved back, from {_at(before)} to {_at(after)}.")
    elif old >= 0 and new - old > MARK_REACH and f"m{old}" not in after.marks:
        yield Cause(
            "mark-moved",
            f"The last cache mark moved from {_at(before)} to {_at(after)}: "
            f"the upstream searches only {MARK_REACH} blocks before a mark.",
        )


def _last_message(marks: Sequence[str]) -> int:
    """The last marked message; -1 if only tools or the system prompt are marked."""
    return max((int(mark[1:]) for mark in marks if mark[0] == "m"), default=-1)


def _at(prompt: PromptFingerprint) -> str:
    last = _last_message(prompt.marks)
    return (
        f"message {last + 1}"
        if last >= 0
        else "the system prompt"
        if prompt.marks[-1][0] == "s"
        else "the tools"
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def same_bytes(before: PromptFingerprint, after: PromptFingerprint) -> int:
    """Bytes of the beginning that are the same, in whole parts."""
    total = 0
    for old, new in ((before.tools, after.tools), (before.system, after.system), aligned(before, after)):
        at = _first_difference(old, new)
        total += sum(part.size for part in new[: min(len(old), len(new)) if at is None else at])
        if at is not None or len(old) != len(new):
            break
    return total


def listed(before: PromptFingerprint, after: PromptFingerprint) -> Iterator[str]:
    """All differences to the request before, in short: for the page of a session."""
    old, new = aligned(before, after)
    more = after.count - before.count
    if _first_difference(old, new) is None and more > 0:
        yield f"{more} new message{'s' if more > 1 else ''}"
    elif _first_difference(old, new) is None and more < 0:
        yield "the last message left out" if more == -1 else f"the last {-more} messages left out"
    yield from (cause.sentence for cause in of_prompt(before, after))
    for name in dict.fromkeys([*before.settings, *after.settings]):
        values = before.settings.get(name), after.settings.get(name)
        if values[0] != values[1] and not any(part in _BREAKING for part in name.split("/")):
            yield f"{name} changed{_values(*values)}"


def aligned(
    before: PromptFingerprint, after: PromptFingerprint
) -> tuple[Sequence[PromptPart], Sequence[PromptPart]]:
    """The messages of both, with as many messages in a part."""
    per = max(before.per, after.per)
    return _grouped(before, per), _grouped(after, per)


def _grouped(prompt: PromptFingerprint, per: int) -> Sequence[PromptPart]:
    """The messages with `per` in a part. A last part with fewer is left out: it is not comparable."""
    parts, size = prompt.messages, prompt.per
    while size < per:
        parts, size = tuple(coarser(parts)), size * 2
    return parts if prompt.count % per == 0 else parts[:-1]


def is_prompt(part: PromptPart) -> bool:
    """Is it a system prompt among the messages?"""
    return part.name in _PROMPTS


def is_prompt_at(prompt: PromptFingerprint, place: str) -> bool:
    at = int(place[1:])
    return prompt.per == 1 and at < len(prompt.messages) and is_prompt(prompt.messages[at])


def _hashes(parts: Sequence[PromptPart]) -> list[int]:
    return [part.hash for part in parts]


def _first_difference(old: Sequence[PromptPart], new: Sequence[PromptPart]) -> int | None:
    """The place of the first part that differs; None if one list is the beginning of the other."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (was, now) in pairs if was.hash != now.hash), None)
