"""`python -m bench.micro`: what the core costs, beside the least any translation can cost.

CPU time, best of several rounds, the measured thing and its floor taken in turns. The floor of a stream is
reading each frame's JSON and writing it again with the same fast library, without looking at it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import msgspec

from dragoman import Exchange, Options, Tool
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.arguments import assemble
from dragoman.tools.rules import rules
from dragoman.tools.schema import compile_schema

ROUNDS = 9
SCHEMA = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["file_path", "content"],
}
TOOLS = (Tool(name="Write", parameters=SCHEMA),)
READ = 4096


def chat_stream(texts: int = 200, fragments: int = 50) -> bytes:
    """Text deltas and a tool call in fragments, as an OpenAI Chat stream."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    arguments = msgspec.json.encode({"file_path": "/src/a.py", "content": "x = 1\n" * 350}).decode()
    size = len(arguments) // fragments + 1
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "Write", "arguments": ""}}
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"word {n} "} for n in range(texts)]
    deltas.append({"tool_calls": [call]})
    for at in range(0, len(arguments), size):
        piece = {"index": 0, "function": {"arguments": arguments[at : at + size]}}
        deltas.append({"tool_calls": [piece]})
    frames = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    frames.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return b"".join(b"data: %s\n\n" % msgspec.json.encode(f) for f in frames) + b"data: [DONE]\n\n"


def translated(upstream: str, client: str, data: bytes) -> bytes:
    exchange = Exchange(upstream, client, tools=TOOLS, options=Options(id="b"))
    pieces = [exchange.feed(data[at : at + READ]) for at in range(0, len(data), READ)]
    return b"".join([*pieces, exchange.close()])


def floor(data: bytes) -> bytes:
    frames = data.split(b"\n\n")
    payloads = [f.partition(b"data: ")[2] for f in frames]
    return b"".join(msgspec.json.encode(msgspec.json.decode(p)) for p in payloads if p[:1] == b"{")


def best(*things: Callable[[], object], repeat: int) -> list[float]:
    """The best CPU time of each, in seconds per call, taken in turns."""
    times = [float("inf")] * len(things)
    for _ in range(ROUNDS):
        for number, thing in enumerate(things):
            start = time.process_time()
            for _ in range(repeat):
                thing()
            times[number] = min(times[number], (time.process_time() - start) / repeat)
    return times


def streams() -> None:
    print("streams: CPU per event, and beside the floor (JSON read and written again)")
    chat = chat_stream()
    samples = {name: translated("openai-chat", name, chat) for name in PROTOCOLS}
    for upstream, data in samples.items():
        events = data.count(b"\n\n")
        for client in PROTOCOLS:
            cost, least = best(
                lambda u=upstream, c=client, d=data: translated(u, c, d),
                lambda d=data: floor(d),
                repeat=5,
            )
            print(f"  {upstream:>17} -> {client:<17} {cost / events * 1e6:6.2f} µs  {cost / least:5.1f} x")


def arguments() -> None:
    print("live arguments in 4-character fragments: CPU per fragment, and growth")
    sizes = (256 * 1024, 1024 * 1024)
    texts = [msgspec.json.encode({"file_path": "a", "content": "y" * size}).decode() for size in sizes]

    def run(text: str) -> None:
        engine = assemble("live", "Write", compile_schema(SCHEMA), rules())
        for at in range(0, len(text), 4):
            engine.feed(text[at : at + 4])
        assert engine.finish(ended=True).complete

    small, large = best(lambda: run(texts[0]), lambda: run(texts[1]), repeat=1)
    print(f"  256 KB {small / (sizes[0] / 4) * 1e6:.2f} µs, 1 MB {large / (sizes[1] / 4) * 1e6:.2f} µs")
    print(f"  1 MB costs {large / small:.2f} times 256 KB")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    streams()
    arguments()
