"""A conversation that the provider stores is passed unchanged to an upstream of the same protocol."""

import asyncio
import json
from typing import Any

import pytest
from gateway_harness import SHORT, Gateway, Got, config, post, running
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES


async def asked(here: Gateway, model: str, **more: Any) -> Got:
    body = {"model": model, "input": "Hello", **more}
    return await post(here, RESPONSES, "/v1/responses", json.dumps(body).encode(), stream=False)


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
def test_a_conversation_passes_between_equal_protocols(conversation: Any) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url)) as here:
            got = await asked(here, "r/m", conversation=conversation)
            assert got.status == 200
            assert served.last.json["conversation"] == conversation
            # Only the provider has the history of this response.
            id = json.loads(got.body)["id"]
            assert (await asked(here, "r/m", previous_response_id=id)).status == 200
            assert served.last.json["previous_response_id"] == id
            assert (await asked(here, "c/m", previous_response_id=id)).status == 400

    asyncio.run(scene())


@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, GEMINI])
def test_other_protocols_refuse_a_stored_conversation(upstream: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url)) as here:
            got = await asked(here, f"{SHORT[upstream]}/m", conversation="conv_1")
            assert "conversation" in got.is_refusal(400)
            assert served.seen == []

    asyncio.run(scene())
