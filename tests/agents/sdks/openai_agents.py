"""The OpenAI Agents SDK, over Chat or Responses as WIRE says."""

import asyncio
import os

from agents import (
    Agent,
    Runner,
    function_tool,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)
from common import BASE, KEY, MODEL, QUESTION, shell
from openai import AsyncOpenAI

set_default_openai_client(AsyncOpenAI(base_url=f"{BASE}/v1", api_key=KEY))
set_default_openai_api(os.environ["WIRE"])
set_tracing_disabled(True)


@function_tool
def run_shell(command: str) -> str:
    """Run a shell command and return what it printed."""
    return shell(command)


async def main() -> None:
    agent = Agent(name="tester", instructions="Use the tool.", model=MODEL, tools=[run_shell])
    print((await Runner.run(agent, QUESTION)).final_output)
    streamed = Runner.run_streamed(agent, QUESTION)
    async for _ in streamed.stream_events():
        pass
    print(streamed.final_output)


asyncio.run(main())
