"""Remove secrets: headers and query parameters by an allowlist, bodies by known secrets and patterns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ...credentials.secret import Secret
from ...protocols.registry import open_headers
from ...wire.surrogates import replace_lone_surrogates

REMOVED = "[removed]"
_REDACTED = b"[redacted]"
# Shorter secrets look like ordinary words: removing them would damage the text.
SHORTEST = 8
_MAX_KNOWN = 64
_NESTED = 3  # levels of JSON inside JSON strings: the body, the tool arguments, and a value in them
# Pieces per search. A search in a much longer text takes several times as long per byte.
_AT_ONCE = 24
# The longest match of a pattern that spans two chunks, in bytes.
PATTERN_REACH = 4096
# Headers that never hold a credential, in addition to the protocols' open headers. Any other header may.
_HARMLESS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "http-referer",
        "originator",
        "retry-after",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "x-amz-date",
        "x-app",
        "x-goog-user-project",
        "x-title",
    }
)
_HARMLESS_FAMILIES = ("x-stainless-",)
_HARMLESS_QUERY = frozenset({"alt", "api-version", "beta"})


def is_harmless(header: str) -> bool:
    name = header.lower()
    return name in _HARMLESS or name in open_headers() or name.startswith(_HARMLESS_FAMILIES)


def harmless_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Harmless headers unchanged; of the others only the names."""
    original = tuple(headers)
    names, others = _split_names(original)
    shown = dict(headers) if names == original else dict(zip(names, headers.values(), strict=True))
    for name in others:
        shown[name] = REMOVED
    for name, value in shown.items():
        if not value.isascii():
            shown[name] = replace_lone_surrogates(value)  # a header may hold bytes that are not UTF-8
    return shown


# Cached: clients send the same few names with every request.
@lru_cache(maxsize=256)
def _split_names(headers: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names in lower case, and those of them that are not harmless."""
    names = tuple(name.lower() for name in headers)
    return names, tuple(name for name in names if not is_harmless(name))


def harmless_path(url: str) -> str:
    """A path or URL without user info and without secret query parameters (`?key=…`)."""
    url = replace_lone_surrogates(url)
    if "?" not in url and "@" not in url:
        return url
    parts = urlsplit(url)
    kept = [_harmless_member(name, value) for name, value in parse_qsl(parts.query, True)]
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, place, parts.path, urlencode(kept, safe="[]"), ""))


def _harmless_member(name: str, value: str) -> tuple[str, str]:
    if name in _HARMLESS_QUERY:
        return name, value
    return (name, REMOVED) if value else (REMOVED, "")  # `?KEY` without a name


def sent_secrets(headers: Mapping[str, str], url: str = "") -> tuple[Secret, ...]:
    """Possible secrets of a request: values of headers and query parameters that are not harmless."""
    # The token without its scheme: an upstream that quotes a refused key quotes only the token.
    texts = [value.removeprefix("Bearer ") for name, value in headers.items() if not is_harmless(name)]
    query = urlsplit(url).query if "?" in url else ""
    for name, value in parse_qsl(query, True):
        if name not in _HARMLESS_QUERY:
            texts.append(value or name)
    for member in query.split("&"):  # also the original percent-encoding, which may differ from ours
        name, _, value = member.partition("=")
        if name not in _HARMLESS_QUERY:
            texts.append(value or name)
    return tuple(Secret(text) for text in dict.fromkeys(texts) if len(text) >= SHORTEST)


class Span(NamedTuple):
    """A range of bytes, and its replacement."""

    start: int
    end: int
    shown: bytes


Form = tuple[bytes, bytes]
"""The bytes of a secret, and their replacement."""


class Redactor:
    """Knows the secrets of this process and the redaction patterns of its config."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._known: dict[Secret, tuple[Form, ...]] = {}
        """Least recently used first."""
        self._forms: tuple[Form, ...] = ()
        """The forms of all known secrets. Replaced, never changed: other threads read it."""
        self.patterns = tuple(patterns)

    @property
    def patterns(self) -> tuple[str, ...]:
        return self._patterns

    @patterns.setter
    def patterns(self, patterns: tuple[str, ...]) -> None:
        self._patterns = patterns
        self._compiled = tuple(re.compile(pattern.encode()) for pattern in patterns)

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Add secrets. If there are too many, forget the least recently used ones."""
        for secret in secrets:
            self._learn(secret)

    def _learn(self, secret: Secret) -> None:
        forms = self._known.pop(secret, None)
        self._known[secret] = _forms(secret) if forms is None else forms
        if forms is None:
            if len(self._known) > _MAX_KNOWN:
                del self._known[next(iter(self._known))]
            self._forms = tuple(form for forms in self._known.values() for form in forms)

    def scrub(self, data: bytes, own: Iterable[Secret] = ()) -> bytes:
        """`data` without secrets. `own` are the secrets of its exchange."""
        spans = self.spans(data, own)
        return replace_spans([data], spans)[0] if spans else data

    def scrub_all(self, pieces: Sequence[bytes], own: Iterable[Secret] = ()) -> Sequence[bytes]:
        """`scrub` for many pieces. Searches several at once, because nearly all of them are clean."""
        safe: list[bytes] = []
        for at in range(0, len(pieces), _AT_ONCE):
            some = pieces[at : at + _AT_ONCE]
            # Patterns need single pieces, because `^` means the start of a piece.
            clean = not self._compiled and not self.spans(b"\n".join(some), own)
            safe += some if clean else [self.scrub(piece, own) for piece in some]
        return safe

    def spans(self, data: bytes, own: Iterable[Secret] = ()) -> list[Span]:
        """The ranges of secrets in `data`, sorted and without overlaps."""
        found = [
            Span(at, at + len(form), shown)
            for form, shown in self.forms(own)
            if data.find(form)
            >= 0  # `find` is faster than `in`, which first tries to convert bytes to an index
            for at in _places(form, data)
        ]
        found += [Span(*m.span(), _REDACTED) for p in self._compiled for m in p.finditer(data)]
        return merge_spans(found) if found else found

    def scrub_text(self, text: str, own: Iterable[Secret] = ()) -> str:
        return self.scrub(text.encode("utf-8", "surrogatepass"), own).decode("utf-8", "surrogatepass")

    def undecided(self, data: bytes, own: Iterable[Secret] = ()) -> int:
        """The number of bytes at the end of `data` that could be the start of a secret."""
        most = min(len(data), PATTERN_REACH) if self._compiled else 0
        for form, _ in self.forms(own):
            most = max(most, partial_match(form, data))
        return most

    def forms(self, own: Iterable[Secret] = ()) -> tuple[Form, ...]:
        """Every encoding of every secret, and its replacement."""
        unknown = [secret for secret in own if secret not in self._known]
        if not unknown:
            return self._forms
        return (*(form for secret in unknown for form in _forms(secret)), *self._forms)


def _forms(secret: Secret) -> tuple[Form, ...]:
    shown = str(secret).encode()
    return tuple((form, shown) for form in dict.fromkeys(_encodings(secret.reveal())))


def _encodings(value: str) -> Iterator[bytes]:
    if len(value) < SHORTEST:
        return
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    yield quote(raw, safe="").encode()
    yield value.replace("/", "\\/").encode("utf-8", "surrogatepass")
    for ascii_only in (True, False):
        # Tool arguments are JSON inside JSON, and their values may be JSON again.
        text = value
        for _ in range(_NESTED):
            text = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            yield text.encode("utf-8", "surrogatepass")


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, with overlapping ones merged."""
    result: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        if result and span.start < result[-1].end:
            last = result[-1]
            result[-1] = last._replace(end=max(last.end, span.end))
        elif span.end > span.start:
            result.append(span)
    return result


def partial_match(form: bytes, data: bytes) -> int:
    """The length of the longest start of `form` at the end of `data`."""
    end = len(data)
    at = data.find(form[0], max(0, end - len(form) + 1))
    while at >= 0:
        if form.startswith(data[at:end]):
            return end - at
        at = data.find(form[0], at + 1)
    return 0


def _places(form: bytes, data: bytes) -> Iterator[int]:
    at = data.find(form)
    while at >= 0:
        yield at
        at = data.find(form, at + len(form))


def replace_spans(chunks: Sequence[bytes], spans: list[Span]) -> list[bytes]:
    """The chunks with their spans replaced. A replacement goes into the chunk where its span starts."""
    result: list[bytes] = []
    start = 0
    for chunk in chunks:
        end = start + len(chunk)
        out, at = b"", start
        for span in spans:
            if span.end <= at or span.start >= end:
                continue
            out += chunk[at - start : max(span.start, at) - start]
            out += span.shown if span.start >= start else b""
            at = min(span.end, end)
        result.append(out + chunk[at - start :])
        start = end
    return result
