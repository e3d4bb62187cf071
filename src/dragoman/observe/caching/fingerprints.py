"""The fingerprint of a request: a checksum and a length of each part of its prompt, in place of the words.

An upstream caches a prompt by its beginning: the tools, the system prompt, then the messages. Two
fingerprints show the first part in which two requests differ, long after their bytes are gone. Nobody can
read the words from them.

Cache marks are no part of the checksums: agents move them from turn to turn, and the prompt stays the same.
Nor is the form of a text: a message that gets a mark turns from a string into a list of one block.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence

import msgspec

from ...protocols.facts import CacheMark, FieldNames, PromptForm

MAX_MESSAGES = 192
"""Parts for messages. If there are more messages, a part is the hash of two, four, … of them."""
MAX_TOOLS = 128
_MAX_SETTINGS = 24
_LONGEST_NAME = 48
_LONGEST_VALUE = 40
_MAX_MARKS = 16
_LOOSE = 2
"""The first messages also have loose hashes: agents put the date and the state of the project there."""

_MARK, _MARK_ALONE = rb"%b\s*:\s*(?:\{[^{}]*\}|null)", rb"%b\s*:\s*\{[^{}]*\}\s*\}"
_TTL = re.compile(rb'"ttl"\s*:\s*"(\d{1,4})([mh])"')
_SECONDS = {b"m": 60, b"h": 3600}
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = re.compile(
    rb"(?=[0-9A-Z])(?<![0-9A-Za-z])"
    rb"(?:\d{4}[-/]\d\d?[-/]\d\d?(?:[T ]\d\d?:\d\d(?::\d\d)?(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\d\d?[./]\d\d?[./]\d{2,4}"
    rb"|\d\d?:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
    rb"(?:" + _MONTH + rb" \d\d?(?:,? \d{4})?|\d\d? " + _MONTH + rb"(?: \d{4})?))"
)
_ID = re.compile(rb"(?<![\w-])[A-Za-z_-]*+\d[\w-]*+")

_LONGEST_LOOSE = 32 * 1024
"""Bytes of a text that are searched for dates and ids. In a longer one, this would take milliseconds."""
_LINE_END = b"\\n"  # as JSON spells it
_DIGIT = re.compile(rb"\d")
# A message in the form of `_one_form`, with its role: the usual case, which needs no decoding.
_IN_FORM = re.compile(rb'\{"role":"([a-z]+)","content":(?!\[\{"type":"text")')

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class PromptPart(msgspec.Struct, frozen=True, array_like=True):
    """One part of a prompt."""

    hash: int
    size: int
    """Bytes, without cache marks."""
    name: str = ""
    """The name of a tool, or the role of a message."""


class Loose(msgspec.Struct, frozen=True, array_like=True):
    """Hashes of a text that stay the same if only these change."""

    dates: int
    ids: int
    """All words with a digit: dates, numbers, ids."""


class PromptFingerprint(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fingerprint of one request, as it was sent to the upstream."""

    tools: tuple[PromptPart, ...] = ()
    system: tuple[PromptPart, ...] = ()
    messages: tuple[PromptPart, ...] = ()
    count: int = 0
    """The number of messages."""
    per: int = 1
    """Messages in one part of `messages`: a power of two."""
    loose: dict[str, Loose] = {}
    """By part: `s0` is the first block of the system prompt, `m0` the first message."""
    settings: dict[str, str] = {}
    """Short values as they are, long ones as a hash, by the name of the setting."""
    marks: tuple[str, ...] = ()
    """The parts with cache marks: `t3`, `s1`, `m14`."""
    ttl: int = 300
    """Seconds that the marks ask the upstream to keep the cache."""
    continues: bool = False
    """The request continues a response that the upstream stored: the rest of the prompt is there."""

    @property
    def size(self) -> int:
        return sum(part.size for part in (*self.tools, *self.system, *self.messages))


class _Item(msgspec.Struct):
    """What names a tool."""

    type: str = ""
    name: str = ""


_item = msgspec.json.Decoder(_Item).decode
# Not part of the prompt, or different in every request.
_NO_SETTINGS = frozenset({"stream", "include_usage", "metadata", "user", "store", "background"})


def prompt_fingerprint(
    body: bytes, model: str, fields: FieldNames, form: PromptForm
) -> PromptFingerprint | None:
    """The fingerprint of a request. None: the body is not a JSON object."""
    try:
        return _Fingerprinter(model, fields, form).of(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class _Fingerprinter:
    def __init__(self, model: str, fields: FieldNames, form: PromptForm) -> None:
        self._fields = fields
        self._form = form
        self._members = {f'"{mark.member}"'.encode(): mark for mark in form.marks}
        self._marks: list[str] = []
        self._ttl = 300
        self._loose: dict[str, Loose] = {}
        self._settings = {"model": model}
        self._continues = False

    def of(self, body: bytes) -> PromptFingerprint:
        tools: list[PromptPart] = []
        system: list[PromptPart] = []
        messages: list[PromptPart] = []
        for path, value in self._flat(body):
            held = self._fields.get(path, ())
            if "messages" in held:
                messages += self._texts(value, "m")
            elif "system" in held:
                system += self._texts(value, "s")
            elif "tools" in held:
                tools += self._tools(path, value, len(tools))
            elif "previous_response_id" in held:
                self._continues = value[:1] == b'"'
            elif (held[:1] and held[0] in _NO_SETTINGS) or "model" in held:
                continue
            else:
                self._set("/".join(held) or path, value)
        count, per = len(messages), 1
        while len(messages) > MAX_MESSAGES:
            messages, per = coarser(messages), per * 2
        if len(tools) > MAX_TOOLS:
            tools = [*tools[: MAX_TOOLS - 1], _joined(tools[MAX_TOOLS - 1 :], "(more tools)")]
        return PromptFingerprint(
            tuple(tools), tuple(system), tuple(messages), count, per, self._loose, self._settings,
            tuple(self._marks[-_MAX_MARKS:]), self._ttl, self._continues,
        )  # fmt: skip

    def _flat(self, body: bytes) -> Iterator[tuple[str, bytes]]:
        """The fields, those in an outer one as `outer.inner`."""
        for name, raw in _members(body).items():
            value = bytes(raw)
            if value[:1] == b"{" and any(path.startswith(f"{name}.") for path in self._fields):
                yield from ((f"{name}.{inner}", bytes(below)) for inner, below in _members(value).items())
            else:
                yield name, value

    def _set(self, name: str, value: bytes) -> None:
        text = value.decode(errors="replace") if len(value) <= _LONGEST_VALUE else f"#{_hash(value):08x}"
        if name in self._settings:
            text = f"{self._settings[name]} {text}"
        if name in self._settings or len(self._settings) < _MAX_SETTINGS:
            self._settings[name[:_LONGEST_NAME]] = text

    def _tools(self, path: str, value: bytes, at: int) -> list[PromptPart]:
        found: list[PromptPart] = []
        marked = self._may_hold_marks(value)
        for data in self._each_tool(value):
            if marked:
                data = self._plain(data, f"t{at + len(found)}")
                if not data:
                    continue
            of = _item(data)
            if not of.name and self._form.tool and (inner := _members(data).get(self._form.tool)):
                of = _item(inner)
            named = of.name or of.type or path
            found.append(PromptPart(_hash(data), len(data), named[:_LONGEST_NAME]))
        return found

    def _each_tool(self, value: bytes) -> Iterator[bytes]:
        group = self._form.tools
        for data in _listed(value):
            grouped = _members(data).get(group) if group else None
            yield from (data,) if grouped is None else _listed(bytes(grouped))

    def _texts(self, value: bytes, kind: str) -> list[PromptPart]:
        """The blocks of a system prompt, or the messages."""
        found: list[PromptPart] = []
        marked = self._may_hold_marks(value)
        for data in _listed(value):
            if marked:
                data = self._plain(data, f"{kind}{len(found)}")
                if not data:
                    continue  # a block that is only a mark
            data, role = _one_form(data)
            if kind == "s" and data[:1] == b"{":
                data = _text_of(data)  # a system prompt may turn from a string into a block
            hash = _hash(data)
            if kind == "s" or len(found) < _LOOSE:
                self._loose[f"{kind}{len(found)}"] = _loose(data, hash)
            found.append(PromptPart(hash, len(data), role))
        return found

    def _plain(self, data: bytes, place: str) -> bytes:
        """A part without its cache marks, which are noted."""
        plain = data
        for name, mark in self._members.items():
            plain = self._without(plain, name, mark)
        if plain != data:
            self._marks.append(place)
        return plain

    def _may_hold_marks(self, value: bytes) -> bool:
        # `rfind` takes a third of the time that `in` takes.
        return any(value.rfind(name) >= 0 for name in self._members)

    def _without(self, data: bytes, name: bytes, mark: CacheMark) -> bytes:
        pattern = re.compile((_MARK_ALONE if mark.alone else _MARK) % name)
        opening = b"{" if mark.alone else b""
        at = data.find(name)
        while at >= 0:
            found = pattern.match(data, at)
            head = data[:at].rstrip()
            if found is None or not head.endswith(opening):
                at = data.find(name, at + 1)
                continue
            lifetime = _TTL.search(found[0])
            seconds = int(lifetime[1]) * _SECONDS[lifetime[2]] if lifetime else mark.seconds
            self._ttl = max(self._ttl, seconds)
            head, tail = head.removesuffix(opening).rstrip(), data[found.end() :].lstrip()
            # One of the two commas goes with the mark.
            data = head[:-1] + tail if head.endswith(b",") else head + tail.removeprefix(b",")
            at = data.find(name, len(head) - 1)
        return data


def _loose(data: bytes, hash: int) -> Loose:
    """The loose hashes of a text with this hash."""
    if len(data) > _LONGEST_LOOSE:
        return Loose(hash, hash)
    # Dates and ids hold digits, so most lines need no search.
    lines = data.split(_LINE_END)
    dateless = [_DATE.sub(b"D", line) if _DIGIT.search(line) else line for line in lines]
    plain = [_ID.sub(b"0", line) if _DIGIT.search(line) else line for line in dateless]
    return Loose(_hash(b"\n".join(dateless)), _hash(b"\n".join(plain)))


def _listed(value: bytes) -> Sequence[bytes]:
    """The items of a list; anything else is one item, but null is none."""
    kind = value[:1]
    return [bytes(item) for item in _items(value)] if kind == b"[" else [] if kind == b"n" else [value]


def _one_form(data: bytes) -> tuple[bytes, str]:
    """A message in the form that does not depend on how its text is wrapped, and its role or type."""
    if (plain := _IN_FORM.match(data)) is not None:
        return data, plain[1].decode()
    if data[:1] != b"{":
        return data, ""
    members = _members(data)
    role = members.get("role") or members.get("type")
    name = "" if role is None else bytes(role).decode(errors="replace").strip('"')[:_LONGEST_NAME]
    content = bytes(members.get("content", b""))
    blocks = _items(content) if content[:1] == b"[" else ()
    if len(blocks) == 1 and bytes(blocks[0])[:1] == b"{":
        text = _text_of(bytes(blocks[0]))
        members["content"] = msgspec.Raw(content if text[:1] == b"{" else text)
    first = {"role": role, **members} if "role" in members else members
    return b"{%b}" % b",".join(b'"%b":%b' % (key.encode(), value) for key, value in first.items()), name


def _text_of(block: bytes) -> bytes:
    """The text of a block that is nothing but text; any other block as it is."""
    members = _members(block)
    return bytes(members["text"]) if members.keys() == {"type", "text"} else block


def coarser(parts: Sequence[PromptPart]) -> list[PromptPart]:
    """Pairs of parts as one. So fingerprints with different numbers of messages in a part can be compared."""
    pairs = [
        PromptPart((one.hash * 31 + other.hash) % 2**32, one.size + other.size, one.name)
        for one, other in zip(parts[::2], parts[1::2], strict=False)
    ]
    return [*pairs, parts[-1]] if len(parts) % 2 else pairs


def _joined(parts: Sequence[PromptPart], name: str) -> PromptPart:
    hash = size = 0
    for part in parts:
        hash = (hash * 31 + part.hash) % 2**32
        size += part.size
    return PromptPart(hash, size, name)


# 32 bits are enough to see that a part changed: there are a few hundred parts, and a collision helps nobody.
# A hash that resists attacks takes four times as long, and every byte of every request passes here.
_hash = zlib.crc32
