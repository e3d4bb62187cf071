"""Anthropic Messages."""

from __future__ import annotations

import msgspec

from ...wire.sse import COMMENT
from ..base import ClientProtocol, WireProtocol
from ..common.call_ids import WORDS
from . import clouds, facts
from .answer import body, encoder, objects
from .answer.decoder import Decoder
from .own import NAME
from .request.fields import FIELDS, PROMPT
from .request.read import read_request
from .request.write import NAMES, write_request

PROTOCOL = WireProtocol(
    name=NAME,
    ids=WORDS,
    names=NAMES,
    carries_searches=True,
    serial=True,
    read_request=read_request,
    fields=FIELDS,
    prompt=PROMPT,
    write_request=write_request,
    decoder=Decoder,
    stream_encoder=encoder.StreamEncoder,
    render=body.render,
    error_body=objects.error_body,
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

BEDROCK: ClientProtocol = msgspec.structs.replace(
    PROTOCOL,
    read_request=clouds.read_bedrock,
    endpoints=clouds.BEDROCK_ENDPOINTS,
    counting=clouds.BEDROCK_COUNTING,
    error_body=clouds.aws_error,
    # A comment is not possible in AWS's framing, and a message before the first event would open the stream.
    keepalive=b"",
    early_keepalive=b"",
)
"""The dialect of clients that use Bedrock, as `AnthropicBedrock` does."""
VERTEX: ClientProtocol = msgspec.structs.replace(
    PROTOCOL, read_request=clouds.read_vertex, endpoints=clouds.VERTEX_ENDPOINTS
)
"""The dialect of clients that use Vertex AI, as `AnthropicVertex` does."""
