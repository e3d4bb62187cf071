"""Cursor's requests, sent as its servers send them: Cursor itself needs a public address and an account.

Nested function tools beside a flat custom `ApplyPatch`, a Chat history and one in Responses items, and
`content: []` on turns with calls. Cursor reads streams eagerly: each call has to come in one piece.
"""

import json
import urllib.request

from common import ABOUT, BASE, KEY, MODEL, QUESTION, SCHEMA, TOOL, shell

APPLY_PATCH = {
    "type": "custom",
    "name": "ApplyPatch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"},
}
TOOLS = [
    {"type": "function", "function": {"name": TOOL, "description": ABOUT, "parameters": SCHEMA}},
    APPLY_PATCH,
]


def deltas(body: dict) -> list[dict]:
    """The deltas of a streamed answer. None of its frames may have an error."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    data = json.dumps({"model": MODEL, "stream": True, "tools": TOOLS, **body}).encode()
    request = urllib.request.Request(f"{BASE}/cursor/chat/completions", data, headers)
    with urllib.request.urlopen(request) as answer:
        lines = [line[6:] for line in answer.read().decode().splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]", lines[-1]
    chunks = [json.loads(line) for line in lines[:-1]]
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def read(found: list[dict]) -> tuple[str, list[dict]]:
    """The text and the calls. A second fragment of a call would be run as a call by itself."""
    text = "".join(delta.get("content") or "" for delta in found)
    entries = [entry for delta in found for entry in delta.get("tool_calls") or ()]
    pieces = [entry for entry in entries if entry["function"].get("arguments")]
    assert len({entry["index"] for entry in pieces}) == len(pieces), entries
    for entry in entries:
        if entry.get("id"):
            own = next(piece for piece in pieces if piece["index"] == entry["index"])
            entry["function"]["arguments"] = own["function"]["arguments"]
    return text, [entry for entry in entries if entry.get("id")]


def chat(calls: list[dict], results: list[str]) -> list[dict]:
    """The turn as Chat messages, with the empty list that Cursor writes for no text."""
    turn = {"role": "assistant", "content": [], "tool_calls": calls}
    return [
        turn,
        *(
            {"role": "tool", "tool_call_id": c["id"], "content": r}
            for c, r in zip(calls, results, strict=True)
        ),
    ]


def items(calls: list[dict], results: list[str]) -> list[dict]:
    """The turn as Responses items: newer versions of Cursor send them to the same address."""
    asked = [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    answers = [
        {"type": "function_call_output", "call_id": call["id"], "output": result}
        for call, result in zip(calls, results, strict=True)
    ]
    return [*asked, *answers]


for member, write in (("messages", chat), ("input", items)):
    history = [{"role": "user", "content": QUESTION}]
    text, calls = read(deltas({member: history}))
    while calls:
        results = [shell(**json.loads(call["function"]["arguments"])) for call in calls]
        history += write(calls, results)
        text, calls = read(deltas({member: history}))
    print(text)
