"""Cache marks that Dragoman adds: which upstreams get them, and where they are reported."""

from typing import Any

import pytest
from support.gateways import Loop, gateway
from support.plain_http import call, post

from dragoman.config import loads
from dragoman.conform.scripted import serve

PATHS: dict[str, tuple[str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "anthropic": ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 99}),
}


@pytest.mark.parametrize("client", PATHS)
@pytest.mark.parametrize("setting", ["true", "false", None])
def test_marks_are_on_the_receipt_and_in_no_header(client: str, setting: str | None) -> None:
    loop = Loop()
    url, stop = loop.run(serve(pace=0))
    config = (
        f'[upstreams.up]\nprotocol = "anthropic"\nbase_url = "{url}"\ncredential = "none"\nstrict = true\n'
    )
    config += f"cache_marks = {setting}\n" if setting else ""
    path, body = PATHS[client]
    try:
        with gateway(config, loop) as running:
            got = post(running.url + path, {"model": "up/demo", **body})
            assert got.status == 200
            assert "x-dragoman-warnings" not in got.headers
            receipt = call(f"{running.url}/exchanges/{got.headers['x-dragoman-exchange']}").json
    finally:
        loop.run(stop())
        loop.close()
    added = setting == "true"
    assert [notice["rule"] for notice in receipt["notices"]] == ["cache-marks-added"] * added
    assert [notice["warning"] for notice in receipt["notices"]] == [False] * added
    assert receipt["warnings"] == 0


@pytest.mark.parametrize(
    ("config", "marks"),
    [
        ("[upstreams.anthropic]", True),
        ('[upstreams.mine]\nprotocol = "anthropic"\nbase_url = "https://api.anthropic.com"', True),
        ("[upstreams.anthropic]\ncache_marks = false", False),
        ("[upstreams.minimax]", "blocks"),
        ('[upstreams.bedrock]\nregion = "us-east-1"', "blocks"),
        ('[upstreams.bedrock]\nprotocol = "bedrock-converse"\nregion = "us-east-1"', "blocks"),
        ('[upstreams.bedrock]\nregion = "us-east-1"\ncache_marks = false', False),
        ('[upstreams.x]\nprovider = "openrouter"\nprotocol = "anthropic"', True),
        ('[upstreams.x]\nprovider = "zai"\nprotocol = "anthropic"', False),
        ('[upstreams.x]\nprovider = "deepseek"\nprotocol = "anthropic"', False),
        ('[upstreams.x]\nprotocol = "anthropic"\nbase_url = "https://llm.example.com"', False),
        (
            '[upstreams.x]\nprotocol = "anthropic"\nbase_url = "https://llm.example.com"\ncache_marks = true',
            True,
        ),
    ],
)
def test_which_upstreams_get_marks(config: str, marks: bool | str) -> None:
    (upstream,) = loads(config).upstreams.values()
    assert upstream.target("m").cache_marks == marks
