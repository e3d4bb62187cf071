"""Cursor: requests in the form of any protocol, answers in Cursor's own JSON, or in Chat with whole calls.

It is a reply protocol: no upstream speaks it.
"""

from __future__ import annotations

import msgspec

from ...wire.sse import COMMENT
from ..base import ClientProtocol
from ..common.call_ids import WORDS
from ..common.tool_names import NameRule
from ..openai_chat import PROTOCOL as OPENAI_CHAT
from ..openai_chat.answer.objects import error_body
from . import facts
from .answer import encoder
from .request.read import read_request, read_streaming_request

PROTOCOL = ClientProtocol(
    name="cursor",
    ids=WORDS,
    names=NameRule(r"[a-zA-Z0-9_-]+", 64),
    serial=True,
    whole=True,
    read_request=read_streaming_request,
    stream_encoder=encoder.StreamEncoder,
    render=encoder.render,
    error_body=error_body,
    keepalive=COMMENT,
    early_keepalive=COMMENT,
    endpoints=facts.ENDPOINTS,
    asked_in=OPENAI_CHAT.name,
)

CHAT: ClientProtocol = msgspec.structs.replace(
    OPENAI_CHAT,
    read_request=read_request,
    # Cursor's bridges cut ids after 64 characters, and then results do not match their calls.
    ids=WORDS,
    serial=True,
    whole=True,
    # Cursor 3.14 crashes on `type: "custom"` (codex-proxy#708). LiteLLM#34029 sent that form in July 2026.
    freeform="function",
    endpoints=facts.CHAT_ENDPOINTS,
)
"""The Chat dialect of Cursor's backend at an "OpenAI base URL": it needs each call in one piece."""
