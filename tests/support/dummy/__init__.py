"""A dummy protocol. Dragoman knows only its record, so it shows what a new protocol needs.

A request is `{"model", "live", "limit", "talk": […], "tools": […]}`, posted to `/v1/ask`. An answer is one
body `{"id", "model", "answer": […], "end", "count"}` or, if `live`, server-sent events (`answer.py`).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.protocols import registry
from dragoman.protocols.base import Target, WireProtocol
from dragoman.protocols.common.call_ids import ANY
from dragoman.protocols.facts import (
    Auth,
    BaseUrlRule,
    Counting,
    Endpoints,
    Headers,
    ModelListFormat,
    SdkObjects,
    Server,
    output_limiter,
    without,
)
from dragoman.wire.sse import COMMENT

from . import answer, judge, request

NAME = "dummy"
VERSION = "x-dummy-version"


def _claims(path: str, headers: Headers) -> bool:
    return "/ask" in path or VERSION in headers


def _headers(target: Target) -> dict[str, str]:
    return {VERSION: "1"}


DUMMY = WireProtocol(
    name=NAME,
    ids=ANY,
    names=request.NAMES,
    serial=False,
    read_request=request.read_request,
    write_request=request.write_request,
    decoder=answer.Decoder,
    stream_encoder=answer.StreamEncoder,
    render=answer.render,
    error_body=answer.error_body,
    keepalive=COMMENT,
    early_keepalive=COMMENT,
    endpoints=Endpoints(answers=("/ask",), counts=("/ask/length",), claims=_claims),
    auth=Auth("x-dummy-key"),
    counting=Counting(suffix="/length", body=without("live", "limit"), member="length"),
    listing=ModelListFormat(
        member="models",
        name="called",
        more="more",
        entry=lambda name, title: {"called": name},
        page=lambda entries: {"models": entries, "more": False},
        known="demo",
    ),
    open_headers=(VERSION,),
    limit_output=output_limiter("limit"),
    address=BaseUrlRule(endpoint=r"/ask$"),
    headers=_headers,
    tool_form=request.TOOLS,
    sdk=SdkObjects(whole=answer.is_whole),
    server=Server(call_ids="d_", wants_seals=False, block=answer.block_of),
)


@contextmanager
def registered() -> Iterator[WireProtocol]:
    """Register the protocol, its judge and its reducer."""
    modules = {f"dragoman.conform.{room}.{NAME}": judge for room in ("laws", "reduce")}
    registry.PROTOCOLS[NAME] = registry.CLIENTS[NAME] = DUMMY
    sys.modules |= modules
    try:
        yield DUMMY
    finally:
        del registry.PROTOCOLS[NAME], registry.CLIENTS[NAME]
        for module in modules:
            del sys.modules[module]
