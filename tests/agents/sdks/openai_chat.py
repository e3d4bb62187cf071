"""The official OpenAI SDK, Chat Completions: bodies, then streams; its own objects are sent back."""

import json

from common import ABOUT, BASE, KEY, MODEL, QUESTION, SCHEMA, TOOL, shell
from openai import OpenAI

client = OpenAI(base_url=f"{BASE}/v1", api_key=KEY)
FUNCTION = {"name": TOOL, "description": ABOUT, "parameters": SCHEMA, "strict": True}


def ask(streamed: bool, messages: list) -> object:
    said = {"model": MODEL, "messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}
    if not streamed:
        return client.chat.completions.create(**said).choices[0].message
    with client.chat.completions.stream(**said) as stream:
        return stream.get_final_completion().choices[0].message


assert client.models.list().data
for streamed in (False, True):
    messages = [{"role": "user", "content": QUESTION}]
    while (answer := ask(streamed, messages)).tool_calls:
        messages.append(answer.to_dict())
        for call in answer.tool_calls:
            result = shell(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    print(answer.content)
