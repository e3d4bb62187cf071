"""`POST /v1/responses/compact`: replaces a conversation by its user messages and one compaction item.

The request becomes an ordinary one that ends with a compaction trigger, and is handled like every request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...protocols.base import ClientProtocol
from ...protocols.common.fields import is_object
from ...protocols.facts import Compaction
from ...transport.server import HttpAnswer, HttpRequest, HttpResponse, json_response
from ..exchange.answering import answer_request
from ..state import State


async def compact(
    state: State, client: ClientProtocol, compaction: Compaction, http: HttpRequest
) -> HttpAnswer:
    """Answer in the client's protocol."""
    compacted: dict[str, Any] = {}

    async def read() -> bytes:
        body = await http.read()
        compacted.update(_decoded(body))
        return msgspec.json.encode(compaction.to_request(compacted)) if compacted else body

    target = http.target.replace(compaction.suffix, "", 1)
    ordinary = HttpRequest("POST", target, http.headers, read, http.sink, client=http.client)
    answer = await answer_request(state, client, ordinary)
    if not isinstance(answer, HttpResponse) or answer.status != 200:
        return answer
    body = compaction.to_answer(compacted, msgspec.json.decode(answer.body))
    # The headers of the ordinary answer that describe its body do not fit this one.
    headers = {name: value for name, value in answer.headers.items() if name.startswith("x-dragoman-")}
    return json_response(body, headers=headers)


def _decoded(body: bytes) -> dict[str, Any]:
    """The members of the body. Empty if it is not a JSON object: the protocol's reader reports the error."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if is_object(value) else {}
