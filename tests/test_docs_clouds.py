"""The configs on the pages about clouds give the addresses and headers that the providers document."""

import json
import re

import pytest
from support.manual import blocks

from dragoman import config, protocol
from dragoman.credentials import BoundCredential, Token
from dragoman.credentials.secret import Secret

CLAUDE = "https://bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages"
BEDROCK_CHAT = "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions"
VERTEX = "https://aiplatform.googleapis.com/v1/projects/PROJECT/locations/global"
BEARER, KEY = "authorization", "x-api-key"

CASES = [
    ("bedrock", "bedrock", "an-aws-key", CLAUDE, BEARER),
    ("bedrock", "bedrock-openai", "an-aws-key", BEDROCK_CHAT, BEARER),
    ("vertex", "vertex", "ya29.token", f"{VERTEX}/publishers/google/models/m:generateContent", BEARER),
    ("vertex", "vertex-chat", "ya29.token", f"{VERTEX}/endpoints/openapi/chat/completions", BEARER),
    ("azure", "foundry", "a-key", "https://RESOURCE.services.ai.azure.com/anthropic/v1/messages", KEY),
]


@pytest.mark.parametrize(("page", "upstream", "key", "url", "header"), CASES)
def test_requests_go_where_the_page_says(page: str, upstream: str, key: str, url: str, header: str) -> None:
    block = next(
        block
        for block in blocks("toml")
        if block.page == f"docs/how-to/upstreams/{page}.md" and f"[upstreams.{upstream}]" in block.code
    )
    named = dict.fromkeys(re.findall(r"env:(\w+)", block.code), key)
    one = config.loads(block.code, shown=str(block), env=named).upstreams[upstream]
    asked = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]})
    request = protocol("anthropic").read_request(asked.encode(), "/v1/messages")
    sent = protocol(one.protocol).write_request(request, one.target("m"))
    bound = BoundCredential(Token(secret=Secret(key)), one.base_url, one.protocol, one.auth)
    assert one.url(sent.path) == url
    assert bound.headers(url) == {header: f"Bearer {key}" if header == BEARER else key}
