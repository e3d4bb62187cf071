"""LangChain's agent, over the protocol that WIRE names: invoked, then streamed."""

import os

from common import BASE, KEY, MODEL, QUESTION, shell
from langchain.agents import create_agent
from langchain.tools import tool


def model() -> object:
    wire = os.environ["WIRE"]
    if wire == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=MODEL, base_url=BASE, api_key=KEY)
    from langchain_openai import ChatOpenAI

    responses = wire == "responses"
    return ChatOpenAI(model=MODEL, base_url=f"{BASE}/v1", api_key=KEY, use_responses_api=responses)


@tool
def run_shell(command: str) -> str:
    """Run a shell command and return what it printed."""
    return shell(command)


agent = create_agent(model(), [run_shell], system_prompt="Use the tool.")
asked = {"messages": [{"role": "user", "content": QUESTION}]}
print(agent.invoke(asked)["messages"][-1].text)
pieces = [piece for piece, _ in agent.stream(asked, stream_mode="messages") if piece.type == "AIMessageChunk"]
print("".join(piece.text for piece in pieces))
