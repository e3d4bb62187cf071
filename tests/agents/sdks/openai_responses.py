"""The official OpenAI SDK, Responses: the history sent by the client, then stored by the server."""

import json

from common import ABOUT, BASE, KEY, MODEL, QUESTION, SCHEMA, TOOL, shell
from openai import OpenAI

client = OpenAI(base_url=f"{BASE}/v1", api_key=KEY)
TOOLS = [{"type": "function", "name": TOOL, "description": ABOUT, "parameters": SCHEMA, "strict": True}]


def ask(streamed: bool, **said: object) -> object:
    said |= {"model": MODEL, "tools": TOOLS}
    if not streamed:
        return client.responses.create(**said)
    with client.responses.stream(**said) as stream:
        return stream.get_final_response()


def results(answer: object) -> list:
    return [
        {"type": "function_call_output", "call_id": i.call_id, "output": shell(**json.loads(i.arguments))}
        for i in answer.output
        if i.type == "function_call"
    ]


history = [{"role": "user", "content": QUESTION}]
while heard := results(answer := ask(False, input=history, store=False)):
    history += [*answer.output, *heard]
print(answer.output_text)

answer = ask(True, input=QUESTION)
while heard := results(answer):
    answer = ask(True, input=heard, previous_response_id=answer.id)
print(answer.output_text)
