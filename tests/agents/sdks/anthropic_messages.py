"""The official Anthropic SDK: bodies, then streams; answers are echoed back unchanged."""

from anthropic import Anthropic
from common import ABOUT, BASE, KEY, MODEL, QUESTION, SCHEMA, TOOL, shell

client = Anthropic(base_url=BASE, api_key=KEY)
TOOLS = [{"name": TOOL, "description": ABOUT, "input_schema": SCHEMA}]


def ask(streamed: bool, messages: list) -> object:
    said = {"model": MODEL, "max_tokens": 2000, "messages": messages, "tools": TOOLS}
    if not streamed:
        return client.messages.create(**said)
    with client.messages.stream(**said) as stream:
        return stream.get_final_message()


assert client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "Hi"}]).input_tokens
for streamed in (False, True):
    messages = [{"role": "user", "content": QUESTION}]
    while (answer := ask(streamed, messages)).stop_reason == "tool_use":
        results = [
            {"type": "tool_result", "tool_use_id": b.id, "content": shell(**b.input)}
            for b in answer.content
            if b.type == "tool_use"
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    print("".join(b.text for b in answer.content if b.type == "text"))
