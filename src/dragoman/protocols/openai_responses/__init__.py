"""OpenAI Responses."""

from __future__ import annotations

from ...wire.sse import COMMENT
from ..base import WireProtocol
from . import facts, socket
from .answer import body, encoder, objects
from .answer.decoder import Decoder
from .answer.echo import echoed_settings
from .own import NAME
from .request.fields import FIELDS, PROMPT
from .request.read import read_request
from .request.write import IDS, NAMES, write_request

PROTOCOL = WireProtocol(
    name=NAME,
    ids=IDS,
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
    echo=echoed_settings,
    error_body=objects.error_body,
    keepalive=COMMENT,
    early_keepalive=COMMENT,
    endpoints=facts.ENDPOINTS,
    compaction=facts.COMPACTION,
    counting=facts.COUNTING,
    reasoning=facts.REASONING,
    socket_format=socket.SOCKET_FORMAT,
    keeps_responses=True,
    limit_output=facts.limit_output,
    address=facts.ADDRESS,
    open_headers=facts.OPEN_HEADERS,
    tool_form=facts.TOOLS,
    sdk=facts.SDK,
    server=facts.SERVER,
)
