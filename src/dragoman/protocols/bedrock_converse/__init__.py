"""Amazon Bedrock's Converse and ConverseStream. Upstreams speak it; clients do not."""

from __future__ import annotations

from ..base import UpstreamProtocol
from ..facts import BaseUrlRule
from .answer.decoder import Decoder
from .own import NAME
from .request.fields import FIELDS, PROMPT
from .request.write import IDS, NAMES, write_request

PROTOCOL = UpstreamProtocol(
    name=NAME,
    ids=IDS,
    names=NAMES,
    fields=FIELDS,
    prompt=PROMPT,
    write_request=write_request,
    decoder=Decoder,
    address=BaseUrlRule(endpoint=r"/converse(-stream)?$", own_version=lambda path, query: False),
)
