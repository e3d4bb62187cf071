"""OpenAI Chat Completions."""

from __future__ import annotations

from ...wire.sse import COMMENT
from ..base import WireProtocol
from . import facts
from .answer import encoder, objects
from .answer.decoder import Decoder
from .own import NAME
from .request.fields import FIELDS, PROMPT
from .request.read import read_request
from .request.write import IDS, NAMES, write_request

PROTOCOL = WireProtocol(
    name=NAME,
    ids=IDS,
    names=NAMES,
    serial=False,
    read_request=read_request,
    fields=FIELDS,
    prompt=PROMPT,
    write_request=write_request,
    decoder=Decoder,
    stream_encoder=encoder.StreamEncoder,
    render=objects.render,
    error_body=objects.error_body,
    keepalive=COMMENT,
    early_keepalive=COMMENT,
    endpoints=facts.ENDPOINTS,
    limit_output=facts.limit_output,
    address=facts.ADDRESS,
    upstream_defaults=facts.DEFAULTS,
    open_headers=facts.OPEN_HEADERS,
    tool_form=facts.TOOLS,
    sdk=facts.SDK,
    server=facts.SERVER,
)
