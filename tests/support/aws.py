"""Bedrock's side: it checks signatures, by botocore, and answers in event streams."""

import base64
import json
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from dragoman.wire.event_stream import encode_event, encode_message

from .stand_in import Answer, Sent

STREAM = "application/vnd.amazon.eventstream"
KEYS = {"AKIAFIRST": "first-secret-key", "AKIASECOND": "second-secret-key"}
"""Access keys and their secret keys."""


def signer(request: Sent, url: str, region: str = "us-east-1", service: str = "bedrock") -> str:
    """The access key that signed `request`. Fails unless botocore computes the same signature."""
    scheme, _, rest = request.headers["authorization"].partition(" ")
    assert scheme == "AWS4-HMAC-SHA256"
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    access, date, signed_region, signed_service, _ = fields["Credential"].split("/")
    assert (signed_region, signed_service) == (region, service)
    names = fields["SignedHeaders"].split(";")
    assert {"host", "x-amz-date"} <= set(names)
    assert ("x-amz-security-token" in names) == ("x-amz-security-token" in request.headers)
    again = AWSRequest(
        method=request.method,
        url=url + request.path,
        headers={name: request.headers[name] for name in names},
        data=request.body,
    )
    moment = request.headers["x-amz-date"]
    assert moment.startswith(f"{date}T")
    again.context["timestamp"] = moment
    auth = SigV4Auth(Credentials(access, KEYS[access]), service, region)
    text = auth.string_to_sign(again, auth.canonical_request(again))
    assert auth.signature(text, again) == fields["Signature"]
    return access


def chunk(event: dict[str, Any]) -> bytes:
    """One of Anthropic's events, as InvokeModelWithResponseStream wraps it."""
    inner = base64.b64encode(json.dumps(event).encode()).decode()
    return encode_event("chunk", json.dumps({"bytes": inner, "p": "abcdefgh"}).encode())


def exception(kind: str, message: str) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return encode_message(headers, json.dumps({"message": message}).encode())


CLAUDE = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_bdrk_01",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 20, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me see."}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "toolu_bdrk_01", "name": "read", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"path": '},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '"a.py"}'},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 30},
    },
    {
        "type": "message_stop",
        "amazon-bedrock-invocationMetrics": {"inputTokenCount": 20, "outputTokenCount": 30},
    },
]
"""An answer of Claude, event by event."""

CONVERSE: list[tuple[str, dict[str, Any]]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "They want "}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "a file."}}}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2lnbmVk"}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Let me"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": " see."}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    (
        "contentBlockStart",
        {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "read"}}},
    ),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"path"'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ': "a.py"}'}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    (
        "metadata",
        {
            "usage": {"inputTokens": 12, "outputTokens": 34, "totalTokens": 51, "cacheReadInputTokens": 5},
            "metrics": {"latencyMs": 7},
        },
    ),
]
"""An answer of ConverseStream, event by event."""

CONVERSE_BODY = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {
                    "reasoningContent": {
                        "reasoningText": {"text": "They want a file.", "signature": "c2lnbmVk"}
                    }
                },
                {"text": "Let me see."},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "read", "input": {"path": "a.py"}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 12, "outputTokens": 34, "totalTokens": 51, "cacheReadInputTokens": 5},
    "metrics": {"latencyMs": 7},
}
"""The same answer as a body."""


def message() -> dict[str, Any]:
    """The answer of `CLAUDE` as one message."""
    start: dict[str, Any] = CLAUDE[0]["message"]
    content = [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_bdrk_01", "name": "read", "input": {"path": "a.py"}},
    ]
    usage = {"input_tokens": 20, "output_tokens": 30}
    return start | {"content": content, "stop_reason": "tool_use", "usage": usage}


def bedrock(request: Sent) -> Answer:
    """What the four operations answer."""
    if request.path.endswith("/invoke-with-response-stream"):
        return Answer(b"".join(map(chunk, CLAUDE)), STREAM)
    if request.path.endswith("/converse-stream"):
        events = [encode_event(kind, json.dumps(event).encode()) for kind, event in CONVERSE]
        return Answer(b"".join(events), STREAM)
    if request.path.endswith("/converse"):
        return Answer(json.dumps(CONVERSE_BODY).encode())
    if request.path.endswith("/invoke"):
        return Answer(json.dumps(message()).encode())
    return Answer(b'{"message":"unknown operation"}', status=404)
