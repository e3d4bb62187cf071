"""pydantic-ai, over the protocol that WIRE names: bodies, then streams."""

import asyncio
import os

from common import BASE, KEY, MODEL, QUESTION, shell
from pydantic_ai import Agent


def model() -> object:
    match os.environ["WIRE"]:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(MODEL, provider=AnthropicProvider(base_url=BASE, api_key=KEY))
        case "gemini":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(MODEL, provider=GoogleProvider(base_url=BASE, api_key=KEY))
        case wire:
            from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
            from pydantic_ai.providers.openai import OpenAIProvider

            kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
            return kind(MODEL, provider=OpenAIProvider(base_url=f"{BASE}/v1", api_key=KEY))


agent = Agent(model(), instructions="Use the tool.")


@agent.tool_plain
def run_shell(command: str) -> str:
    """Run a shell command and return what it printed."""
    return shell(command)


async def listen(_: object, events: object) -> None:
    async for _ in events:
        pass


async def main() -> None:
    print((await agent.run(QUESTION)).output)
    print((await agent.run(QUESTION, event_stream_handler=listen)).output)


asyncio.run(main())
