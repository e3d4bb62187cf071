"""The bytes of an exchange for the inspector: requests and streams of both sides, as text if possible."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from ...observe.tap import (
    ClientBytes,
    ClientRequest,
    Redactor,
    Track,
    UpstreamBytes,
    UpstreamRequest,
    scrub_stream,
)
from ...protocols.registry import CLIENTS, client_protocol, upstream_protocol
from ...translation.field_changes import FieldChange, field_changes

_UTF8 = codecs.getincrementaldecoder("utf-8")


def sides(track: Track, redactor: Redactor) -> dict[str, Any]:
    """The recorded bytes of `track`, without secrets."""
    view = _RedactedView(track, redactor)
    records = track.records
    requests = [record for record in records if isinstance(record, UpstreamRequest)]
    received = [record for record in records if isinstance(record, UpstreamBytes)]
    sent = [record for record in records if isinstance(record, ClientBytes)]
    client_request = next((record for record in records if isinstance(record, ClientRequest)), None)
    upstream: list[dict[str, Any]] = []
    for call in dict.fromkeys(record.call for record in received):
        upstream += view.stream([record for record in received if record.call == call])
    return {
        "client_request": view.client_request(client_request) if client_request else None,
        "upstream_requests": [view.upstream_request(record) for record in requests],
        "upstream": upstream,
        "client": view.stream(sent),
        "fields": _fields(track, client_request, requests[-1]) if client_request and requests else None,
        "dropped": track.dropped,
    }


def _fields(track: Track, asked: ClientRequest, sent: UpstreamRequest) -> list[FieldChange] | None:
    """What became of each field of the client's request. None: a body is not a JSON object."""
    client = client_protocol(track.client, asked.path)
    client = CLIENTS[client.asked_in or client.name]
    try:
        before, after = (msgspec.json.decode(side.body, type=dict[str, Any]) for side in (asked, sent))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return field_changes(client, upstream_protocol(sent.protocol), before, after, track.notices, asked.path)


def chunks_as_text(records: Sequence[UpstreamBytes | ClientBytes]) -> list[dict[str, Any]]:
    """The chunks of one stream as text. A character that is split over two chunks is in the second one."""
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


class _RedactedView:
    def __init__(self, track: Track, redactor: Redactor) -> None:
        self._secrets = track.secrets
        self._redactor = redactor

    def client_request(self, request: ClientRequest) -> dict[str, Any]:
        return {
            "t": round(request.t, 6),
            "method": request.method,
            "path": request.path,
            "headers": self._headers(request.headers),
            **self._body(request.body),
        }

    def upstream_request(self, request: UpstreamRequest) -> dict[str, Any]:
        return {
            "t": round(request.t, 6),
            "attempt": request.call,
            "upstream": request.upstream,
            "protocol": request.protocol,
            "url": request.url,
            "headers": self._headers(request.headers),
            **self._body(request.body),
        }

    def stream(self, records: Sequence[UpstreamBytes | ClientBytes]) -> list[dict[str, Any]]:
        chunks = scrub_stream(self._redactor, [record.data for record in records], self._secrets)
        clean = [structs.replace(record, data=data) for record, data in zip(records, chunks, strict=True)]
        return chunks_as_text(clean)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: self._redactor.scrub_text(value, self._secrets) for name, value in headers.items()}

    def _body(self, body: bytes) -> dict[str, str]:
        """As text, and also in base64 if the body is not UTF-8."""
        clean = self._redactor.scrub(body, self._secrets)
        try:
            return {"body": clean.decode()}
        except UnicodeDecodeError:
            return {
                "body": clean.decode("utf-8", "replace"),
                "body_base64": base64.b64encode(clean).decode(),
            }
