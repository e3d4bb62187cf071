"""Write web searches of Dragoman as `web_search_call` items.

OpenAI puts the addresses of the found pages into `action.sources`, and their text into `results`. A client
that sends the item back also sends the text, so Dragoman needs no store. The prefix of the ids distinguishes
Dragoman's items from OpenAI's.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Search, Source
from ..common.fields import Obj, is_array, is_object

ITEM = "web_search_call"
PREFIX = "ws_dgm"


def search_item(search: Search, id: str) -> Obj:
    action: Obj = {
        "type": "search",
        "query": search.query,
        "queries": [search.query],
        "sources": [{"type": "url", "url": source.url} for source in search.sources],
    }
    results = [msgspec.structs.asdict(source) for source in search.sources]
    status = "completed" if search.error is None else "failed"
    return {"id": id, "type": ITEM, "status": status, "action": action, "results": results}


def begun(item: Obj) -> Obj:
    """The item of a search that has just begun."""
    action: Obj = {**item["action"], "sources": []}
    return {**item, "status": "in_progress", "action": action, "results": []}


def is_own(item: Any) -> bool:
    """Did Dragoman run this search?"""
    id = item.get("id") if is_object(item) else None
    return isinstance(id, str) and id.startswith(f"{PREFIX}_")


def search_of(item: Obj) -> Search:
    """Read a search. A client may have left out `results`: then only the addresses are known."""
    action, results = item.get("action"), item.get("results")
    action = action if is_object(action) else {}
    found = results if is_array(results) and results else action.get("sources")
    sources = [_source(page) for page in found if is_object(page)] if is_array(found) else []
    error = "unavailable" if item.get("status") == "failed" else None
    query = action.get("query")
    return Search(
        id=item["id"], query=query if isinstance(query, str) else "", sources=tuple(sources), error=error
    )


def _source(page: Obj) -> Source:
    url, title, text = (page.get(name) for name in ("url", "title", "text"))
    return Source(
        url if isinstance(url, str) else "",
        title if isinstance(title, str) else "",
        text if isinstance(text, str) else "",
    )
