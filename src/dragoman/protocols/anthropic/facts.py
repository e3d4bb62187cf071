"""Facts about Anthropic Messages: its paths, headers, counts, lists, and how its servers behave."""

from __future__ import annotations

import re
from typing import Any

from ..base import Target
from ..common.fields import is_object
from ..facts import (
    Auth,
    BaseUrlRule,
    Counting,
    Endpoints,
    Headers,
    ModelListFormat,
    Obj,
    OtherEndpoint,
    ReasoningReplay,
    SdkObjects,
    Server,
    ToolForm,
    output_limiter,
    without,
)
from .request.read_tools import read_tool

VERSION, BETA = "anthropic-version", "anthropic-beta"

_EVENTS = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop"}
    | {"message_delta", "message_stop", "message", "ping"}
)
# Anthropic's tool types end with a date in one piece (`bash_20250124`), OpenAI's with a date in three.
_OWN_TOOL = re.compile(r"[a-z_]+_\d{8}")
# Anthropic's `count_tokens` endpoint rejects these members.
_ABOUT_THE_ANSWER = (
    "max_tokens", "stream", "temperature", "top_p", "top_k", "stop_sequences", "metadata",
    "service_tier", "container",
)  # fmt: skip


# A path or header that only this protocol has. It is used for requests that match no endpoint, such as a
# mistyped path: the error then has the form that the client's SDK can show.
def _claims(path: str, headers: Headers) -> bool:
    return "/messages" in path or VERSION in headers


def _asks_for_thinking(body: Obj) -> bool:
    thinking: Any = body.get("thinking")
    return thinking is not None and thinking.get("type") in ("enabled", "adaptive")


def limit_output(body: Obj, most: int, budget: int | None) -> Obj:
    """Limit a body to `most` output tokens, of which `budget` are for thinking."""
    limited = output_limiter("max_tokens")(body, most, None)
    thinking: Any = limited.get("thinking")
    if budget is not None and is_object(thinking) and "budget_tokens" in thinking:
        limited["thinking"] = {**thinking, "budget_tokens": budget}
    return limited


def _is_tool(tool: Obj) -> bool:
    kind = tool.get("type")
    return "input_schema" in tool or (isinstance(kind, str) and _OWN_TOOL.fullmatch(kind) is not None)


# `event` is the SSE name: some servers leave `type` out of the JSON.
def _is_whole(frame: Obj, event: str) -> bool | None:
    kind = frame.get("type")
    kind = kind if isinstance(kind, str) else event
    return kind == "message" if kind in _EVENTS else None


def _entry(name: str, title: str) -> Obj:
    # The SDK requires a date. The gateway does not know when a model was made.
    return {"type": "model", "id": name, "display_name": title, "created_at": "1970-01-01T00:00:00Z"}


def _page(entries: list[Obj]) -> Obj:
    first, last = (entries[0]["id"], entries[-1]["id"]) if entries else (None, None)
    return {"data": entries, "has_more": False, "first_id": first, "last_id": last}


def headers(target: Target) -> dict[str, str]:
    """The headers that every request needs besides the credential."""
    return {VERSION: target.anthropic_version}


OPEN_HEADERS = (VERSION, BETA, "anthropic-dangerous-direct-browser-access")
# The results of a batch are at a URL of Anthropic's, which the SDK asks with the client's own key.
_BATCH, _LINKS = "/messages/batches/{id}", ("results_url",)
_ID = ("id",)
_OTHERS = (
    OtherEndpoint(name="files", path="/files", methods=("GET", "POST"), names=_ID, listed="data"),
    OtherEndpoint(name="files", path="/files/{id}", methods=("GET", "DELETE"), names=_ID),
    OtherEndpoint(name="files", path="/files/{id}/content", methods=("GET",)),
    OtherEndpoint(
        name="batches",
        path="/messages/batches",
        methods=("GET", "POST"),
        links=_LINKS,
        names=_ID,
        listed="data",
        paid_later=True,
    ),
    OtherEndpoint(name="batches", path=_BATCH, methods=("GET", "DELETE"), links=_LINKS, names=_ID),
    OtherEndpoint(name="batches", path=f"{_BATCH}/cancel", links=_LINKS, names=_ID),
    OtherEndpoint(name="batches", path=f"{_BATCH}/results", methods=("GET",)),
)
ENDPOINTS = Endpoints(
    answers=("/messages",), counts=("/messages/count_tokens",), others=_OTHERS, claims=_claims
)
# Claude Code's OAuth tokens (`sk-ant-oat…`) only work as a bearer token. Other servers of this protocol often
# take any key as a bearer token only. Anthropic's SDK sends its key that way since 2.0.
AUTH = Auth("x-api-key", ("sk-ant-oat",), bearer_elsewhere=True)
COUNTING = Counting(
    suffix="/count_tokens",
    body=without(*_ABOUT_THE_ANSWER),
)
LISTING = ModelListFormat(path="/v1/models?limit=1000", entry=_entry, page=_page, known="claude-sonnet-4-5")
REASONING = ReasoningReplay(seals=True, thoughts=True, asked_for=_asks_for_thinking)
# Anthropic's SDK adds /v1 to every base URL.
ADDRESS = BaseUrlRule(endpoint=r"/messages$", own_version=lambda path, query: False)
TOOLS = ToolForm(fits=_is_tool, read=read_tool)
SDK = SdkObjects(whole=_is_whole)
SERVER = Server(
    call_ids="toolu_",
    id_header="request-id",
    objects_in_bodies=True,
    block=lambda frame: frame.get("index"),
)
