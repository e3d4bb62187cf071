"""Make tool-call ids legal for the client and the upstream, and restore the upstream's ids.

An id that is illegal for the client (Kimi's `functions.Bash:0`) is escaped. The escaping is reversible, so
the next turn's request gets the upstream's own id back without stored state. Only an id that is too long for
that is replaced by its hash. Then the call and its result both carry the hash, so they still match.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

_ANYTHING = r"(?s).+"
_MARK = "dgm-"
_HASHED = "dgmh-"
OURS = "dgm"
"""The prefix of all ids from `for_client`."""
_SAFE = re.compile(r"[A-Za-z0-9_]")
_ESCAPE = re.compile(rb"-([0-9a-f]{2})")


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern).fullmatch


class IdRule(msgspec.Struct, frozen=True):
    """The tool-call ids that a protocol or an upstream accepts."""

    pattern: str
    max_length: int
    optional: bool = False
    """A call need not have an id (Gemini 2 sends none)."""

    @property
    def free(self) -> bool:
        """Is every character allowed?"""
        return self.pattern == _ANYTHING

    def legal(self, id: str) -> bool:
        return 0 < len(id) <= self.max_length and (self.free or _matcher(self.pattern)(id) is not None)


ANY = IdRule(_ANYTHING, 1 << 16)
# The characters that Anthropic allows, and the length that OpenAI's Responses API allows.
WORDS = IdRule(r"[A-Za-z0-9_-]+", 64)
OPENAI = IdRule(_ANYTHING, 64)
# Mistral refuses every other form (opencode#1680, vllm#9019).
MISTRAL = IdRule(r"[A-Za-z0-9]{9}", 9)


def for_client(id: str, rule: IdRule) -> str:
    """Make `id` legal for the client. `from_client` reverses it."""
    if rule.legal(id) and not id.startswith((_MARK, _HASHED)):
        return id
    escaped = _MARK + "".join(c if _SAFE.match(c) else _hex(c) for c in id)
    return escaped if rule.legal(escaped) else _HASHED + _digest(id)[:40]


def from_client(id: str) -> str:
    """Restore the upstream's own id from one of `for_client`. Other ids stay as they are."""
    if not id.startswith(_MARK):
        return id
    raw = _ESCAPE.sub(_byte, id[len(_MARK) :].encode())
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return id


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 16)])


def for_upstream(id: str, rule: IdRule) -> str:
    """Make `id` legal for the upstream: unchanged, or a hash. A call and its result get the same hash."""
    if rule.legal(id):
        return id
    digest = _digest(id)
    return digest[: min(rule.max_length, 24)]


def upstream_ids(rule: IdRule) -> Callable[[str], str]:
    """`for_upstream` with this rule, faster for rules that allow every character."""
    if not rule.free:
        return lambda id: for_upstream(id, rule)
    max_length = rule.max_length
    return lambda id: id if 0 < len(id) <= max_length else for_upstream(id, rule)


def _hex(character: str) -> str:
    return "".join(f"-{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _digest(id: str) -> str:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()


class UniqueIds:
    """Call ids that are legal and unique for the upstream. Ask in the order of the conversation.

    Some providers (Bedrock Mantle: `call_0`) use the same id in every turn. Others refuse an id that they
    have seen (Anthropic), or match a result to its call by the id alone.
    """

    def __init__(self, rule: IdRule) -> None:
        self._rule = rule
        self._used: set[str] = set()
        self._unanswered: dict[str, list[str]] = {}

    def call(self, id: str) -> str:
        first = given = for_upstream(id, self._rule)
        again = 1
        while given in self._used:
            again += 1
            given = for_upstream(f"{first}_{again}", self._rule)
        self._used.add(given)
        self._unanswered.setdefault(id, []).append(given)
        return given

    def result(self, id: str) -> str:
        waiting = self._unanswered.get(id)
        return waiting.pop(0) if waiting else for_upstream(id, self._rule)
