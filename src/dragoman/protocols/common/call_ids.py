"""Tool-call ids: legal for whoever reads them, and the upstream's own again when they come back.

To the client, an illegal id (Kimi's `functions.Bash:0`) is escaped reversibly, so no memory is needed to
give the upstream its own id back on the next turn. Only an id too long for that is replaced by its hash;
both the call and its result carry the hash from then on, so they still find each other.
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
"""How ids begin that `for_client` made, or that look so."""
_SAFE = re.compile(r"[A-Za-z0-9_]")
_ESCAPE = re.compile(rb"-([0-9a-f]{2})")


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern).fullmatch


class IdRule(msgspec.Struct, frozen=True):
    """What a protocol accepts as a tool-call id."""

    pattern: str
    longest: int
    optional: bool = False
    """Calls may go without one (Gemini 2 gives none)."""

    @property
    def free(self) -> bool:
        """May anything stand in one that is not too long?"""
        return self.pattern == _ANYTHING

    def legal(self, id: str) -> bool:
        return 0 < len(id) <= self.longest and (self.free or _matcher(self.pattern)(id) is not None)


ANY = IdRule(_ANYTHING, 1 << 16)
WORDS = IdRule(r"[A-Za-z0-9_-]+", 64)
MISTRAL = IdRule(r"[A-Za-z0-9]{9}", 9)


def for_client(id: str, rule: IdRule) -> str:
    """`id` as the client may see it; `from_client` undoes it."""
    if rule.legal(id) and not id.startswith((_MARK, _HASHED)):
        return id
    escaped = _MARK + "".join(c if _SAFE.match(c) else _hex(c) for c in id)
    return escaped if rule.legal(escaped) else _HASHED + _digest(id)[:40]


def from_client(id: str) -> str:
    """The upstream's own id, where `for_client` made this one."""
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
    """`id` as the target may see it: itself, or a stable stand-in for the call and its result alike."""
    if rule.legal(id):
        return id
    digest = _digest(id)
    return digest[: min(rule.longest, 24)]


def upstream_ids(rule: IdRule) -> Callable[[str], str]:
    """`for_upstream` for all ids of one request."""
    if not rule.free:
        return lambda id: for_upstream(id, rule)
    longest = rule.longest
    return lambda id: id if 0 < len(id) <= longest else for_upstream(id, rule)


def _hex(character: str) -> str:
    return "".join(f"-{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _digest(id: str) -> str:
    return hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
