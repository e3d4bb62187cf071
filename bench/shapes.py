"""The shape of an answer. It is encoded in the model's name, which every gateway passes to the upstream."""

from __future__ import annotations

import re

import msgspec

_NAME = re.compile(rb"bench-(\d+)x(\d+)-(\d+)x(\d+)-(\d+)ms")
TOOL = "Write"
PATH = "src/example.py"


class Shape(msgspec.Struct, frozen=True):
    """Text deltas of one size, then one tool call in fragments; sent at once, or paced."""

    texts: int = 200
    text_size: int = 8
    fragments: int = 50
    arguments: int = 2100
    every_ms: int = 0

    @property
    def model(self) -> str:
        sizes = f"{self.texts}x{self.text_size}-{self.fragments}x{self.arguments}"
        return f"bench-{sizes}-{self.every_ms}ms"

    @property
    def events(self) -> int:
        """The number of upstream events, counted the same for every subject."""
        return self.texts + self.fragments

    def pieces(self) -> list[str]:
        """The text deltas."""
        return [f"{number} ".ljust(self.text_size, "w") for number in range(self.texts)]

    def call(self) -> dict[str, str]:
        """The arguments of the tool call."""
        line = 'print("a line of a program")\n'
        return {"file_path": PATH, "content": line * (self.arguments // len(line) + 1)}

    def argument_fragments(self) -> list[str]:
        """The arguments as JSON text, in fragments."""
        text = msgspec.json.encode(self.call()).decode()
        size = -(-len(text) // self.fragments)
        return [text[at : at + size] for at in range(0, len(text), size)]


SHORT = Shape(texts=20, fragments=1, arguments=200)
STREAM = Shape()
BRIEF = Shape(texts=5, fragments=0)
PACED = Shape(texts=100, fragments=0, every_ms=100)
PACED_SHORT = Shape(texts=30, fragments=0, every_ms=100)
FAULTS = "conform-openai-chat"
"""The model of `bench.faults`: no shape, but a recorded failure that the question names."""


def shape_of(request: bytes | bytearray) -> Shape | None:
    """The shape that the model named in a request asks for."""
    found = _NAME.search(request)
    return Shape(*(int(number) for number in found.groups())) if found else None
