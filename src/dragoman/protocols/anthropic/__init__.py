"""Anthropic Messages."""

from __future__ import annotations

from ...wire.sse import COMMENT
from ..base import WireProtocol
from ..common.call_ids import WORDS
from . import facts
from .answer import encoder
from .answer.decoder import Decoder
from .request.read import read_request
from .request.write import NAMES, write_request

PROTOCOL = WireProtocol(
    name="anthropic",
    ids=WORDS,
    names=NAMES,
    carries_searches=True,
    serial=True,
    read_request=read_request,
    write_request=write_request,
    decoder=Decoder,
    stream_encoder=encoder.StreamEncoder,
    render=encoder.render,
    error_body=encoder.error_body,
    keepalive=encoder.PING,
    early_keepalive=COMMENT,
    endpoints=facts.ENDPOINTS,
    auth=facts.AUTH,
    counting=facts.COUNTING,
    listing=facts.LISTING,
    reasoning=facts.REASONING,
    limit_output=facts.limit_output,
    address=facts.ADDRESS,
    headers=facts.headers,
    beta_header=facts.BETA,
    open_headers=facts.OPEN_HEADERS,
    tool_form=facts.TOOLS,
    sdk=facts.SDK,
    server=facts.SERVER,
)
