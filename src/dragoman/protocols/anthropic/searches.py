"""Write web searches of Dragoman as Anthropic's blocks: `server_tool_use` and `web_search_tool_result`.

Anthropic puts the encrypted text of a page into `encrypted_content`, and the client sends it back in the next
turn. Dragoman puts the plain text there in base64, so it needs no store. The prefix of the ids distinguishes
Dragoman's blocks from Anthropic's.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from ...model.messages import Search, Source
from ..common.fields import Obj, is_array, is_object
from ..common.searches import SEARCH

CALL = "server_tool_use"
RESULT = "web_search_tool_result"
_ID = "srvtoolu_dgm"
_TEXT = "dgm1."


def search_blocks(search: Search) -> tuple[Obj, Obj]:
    """The call and its result."""
    id = f"{_ID}{''.join(c for c in search.id if c.isalnum() or c == '_')}"
    call = {"type": CALL, "id": id, "name": SEARCH, "input": {"query": search.query}}
    content: Any = [_result(source) for source in search.sources]
    if search.error is not None:
        content = {"type": f"{RESULT}_error", "error_code": search.error}
    return call, {"type": RESULT, "tool_use_id": id, "content": content}


def _result(source: Source) -> Obj:
    sealed = _TEXT + base64.b64encode(source.text.encode("utf-8", "surrogatepass")).decode()
    return {
        "type": "web_search_result",
        "url": source.url,
        "title": source.title,
        "encrypted_content": sealed,
        "page_age": None,
    }


def own_id(block: Obj) -> str | None:
    """The id of the search, if `block` is the call or the result of one that Dragoman ran."""
    id = block.get("id" if block.get("type") == CALL else "tool_use_id")
    return id if isinstance(id, str) and id.startswith(_ID) else None


def query_of(call: Obj) -> str:
    given = call.get("input")
    query = given.get("query") if is_object(given) else None
    return query if isinstance(query, str) else ""


def search_of(result: Obj, query: str) -> Search:
    """Read the result of a search for `query`, which a client sent back."""
    content, error = result.get("content"), None
    if is_object(content):
        error = str(content.get("error_code") or "unavailable")
    found = [_source(item) for item in content if is_object(item)] if is_array(content) else []
    return Search(id=own_id(result) or "", query=query, sources=tuple(found), error=error)


def _source(item: Obj) -> Source:
    url, title = (str(item.get(name) or "") for name in ("url", "title"))
    return Source(url, title, _text(item.get("encrypted_content")))


def _text(sealed: Any) -> str:
    if not isinstance(sealed, str) or not sealed.startswith(_TEXT):
        return ""
    try:
        return base64.b64decode(sealed[len(_TEXT) :], validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        return ""
