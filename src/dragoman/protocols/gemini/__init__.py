"""Google Gemini generateContent."""

from __future__ import annotations

import msgspec

from ..base import ClientProtocol, WireProtocol
from . import facts
from .answer import encoder
from .answer.decoder import Decoder
from .own import NAME
from .request.fields import FIELDS, PROMPT
from .request.read import read_request
from .request.write import IDS, NAMES, write_request

PROTOCOL = WireProtocol(
    name=NAME,
    ids=IDS,
    names=NAMES,
    serial=True,
    read_request=read_request,
    fields=FIELDS,
    prompt=PROMPT,
    write_request=write_request,
    decoder=Decoder,
    stream_encoder=encoder.StreamEncoder,
    render=encoder.render,
    error_body=encoder.error_body,
    keepalive=b"",
    early_keepalive=b"",
    endpoints=facts.ENDPOINTS,
    auth=facts.AUTH,
    counting=facts.COUNTING,
    listing=facts.LISTING,
    reasoning=facts.REASONING,
    operation="generate_content",
    limit_output=facts.limit_output,
    address=facts.ADDRESS,
    tool_form=facts.TOOLS,
    sdk=facts.SDK,
    server=facts.SERVER,
)

VERTEX: ClientProtocol = msgspec.structs.replace(PROTOCOL, endpoints=facts.VERTEX_ENDPOINTS)
"""The dialect of clients that use Vertex AI, as google-genai does in its mode for it."""
