"""An exchange's bytes for people to look at: both requests and both streams, as text where they are text."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from ..observe.tap import (
    ClientBytes,
    ClientRequest,
    Redactor,
    Track,
    UpstreamBytes,
    UpstreamRequest,
    scrub_stream,
)

_UTF8 = codecs.getincrementaldecoder("utf-8")


def sides(track: Track, redactor: Redactor) -> dict[str, Any]:
    """What is in the ring of `track`."""
    looker = _Looker(track, redactor)
    records = track.records
    asked = [record for record in records if isinstance(record, UpstreamRequest)]
    came = [record for record in records if isinstance(record, UpstreamBytes)]
    went = [record for record in records if isinstance(record, ClientBytes)]
    read = next((record for record in records if isinstance(record, ClientRequest)), None)
    upstream: list[dict[str, Any]] = []
    for call in dict.fromkeys(record.call for record in came):
        upstream += looker.stream([record for record in came if record.call == call])
    return {
        "client_request": looker.client_request(read) if read else None,
        "upstream_requests": [looker.upstream_request(record) for record in asked],
        "upstream": upstream,
        "client": looker.stream(went),
        "dropped": track.dropped,
    }


def chunks_shown(records: Sequence[UpstreamBytes | ClientBytes]) -> list[dict[str, Any]]:
    """One stream's chunks. A character that was cut in two is shown where it ends."""
    shown: list[dict[str, Any]] = []
    decoder = _UTF8()
    for record in records:
        entry: dict[str, Any] = {"t": round(record.t, 6)}
        if isinstance(record, UpstreamBytes):
            entry["attempt"] = record.call
        elif record.alive:
            entry["alive"] = True
        pending = decoder.getstate()[0]
        try:
            entry["text"] = decoder.decode(record.data)
        except UnicodeDecodeError:
            entry["base64"] = base64.b64encode(pending + record.data).decode()
            decoder.reset()
        shown.append(entry)
    return shown


class _Looker:
    def __init__(self, track: Track, redactor: Redactor) -> None:
        self._own = track.secrets
        self._redactor = redactor

    def client_request(self, read: ClientRequest) -> dict[str, Any]:
        return {
            "t": round(read.t, 6),
            "method": read.method,
            "path": read.path,
            "headers": self._headers(read.headers),
            **self._body(read.body),
        }

    def upstream_request(self, asked: UpstreamRequest) -> dict[str, Any]:
        return {
            "t": round(asked.t, 6),
            "attempt": asked.call,
            "upstream": asked.upstream,
            "protocol": asked.protocol,
            "url": asked.url,
            "headers": self._headers(asked.headers),
            **self._body(asked.body),
        }

    def stream(self, records: Sequence[UpstreamBytes | ClientBytes]) -> list[dict[str, Any]]:
        chunks = scrub_stream(self._redactor, [record.data for record in records], self._own)
        clean = [structs.replace(record, data=data) for record, data in zip(records, chunks, strict=True)]
        return chunks_shown(clean)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: self._redactor.scrub_text(value, self._own) for name, value in headers.items()}

    def _body(self, body: bytes) -> dict[str, str]:
        """As text; if it is not UTF-8, also as the bytes that it is."""
        clean = self._redactor.scrub(body, self._own)
        try:
            return {"body": clean.decode()}
        except UnicodeDecodeError:
            return {
                "body": clean.decode("utf-8", "replace"),
                "body_base64": base64.b64encode(clean).decode(),
            }
