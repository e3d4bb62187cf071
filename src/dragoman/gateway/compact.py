"""`POST /v1/responses/compact`: a conversation in, its user messages and one compaction item out.

The request becomes an ordinary one with a compaction trigger at its end, and takes the way of every request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..protocols.base import ClientProtocol
from ..protocols.common.fields import is_object
from ..protocols.facts import Compaction
from ..transport.server import HttpAnswer, HttpRequest, HttpResponse, json_response
from .exchange_handler import ExchangeHandler
from .state import State


async def compact(
    state: State, client: ClientProtocol, compaction: Compaction, http: HttpRequest
) -> HttpAnswer:
    """Answer in the client's protocol."""
    given: dict[str, Any] = {}

    async def read() -> bytes:
        body = await http.read()
        given.update(_decoded(body))
        return msgspec.json.encode(compaction.asked(given)) if given else body

    target = http.target.replace(compaction.suffix, "", 1)
    asked = HttpRequest("POST", target, http.headers, read, http.sink, client=http.client)
    answer = await ExchangeHandler(state, client, asked).run()
    if not isinstance(answer, HttpResponse) or answer.status != 200:
        return answer
    body = compaction.answered(given, msgspec.json.decode(answer.body))
    headers = {name: value for name, value in answer.headers.items() if name.startswith("x-dragoman-")}
    return json_response(body, headers=headers)


def _decoded(body: bytes) -> dict[str, Any]:
    """The body's members. A body that is not an object is left to the reader, which says what is wrong."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if is_object(value) else {}
