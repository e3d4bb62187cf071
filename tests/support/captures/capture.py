"""The parts of a real client's first request."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Headers = dict[str, str]

TASK = "Run `ls -l`"


@dataclass(frozen=True, slots=True)
class Capture:
    profile: str
    protocol: str
    path: str
    headers: Headers
    body: Json
    tool: str | None = None
    """The tool that does what is asked, as the client calls it."""
    manner: frozenset[str] = field(default_factory=frozenset)
    """How it sends back what it got: see `agent_turns.py`."""

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream")) or "stream" in self.path

    def asking(self, model: str) -> tuple[str, Json]:
        """Path and body of this request to `model`."""
        if "{model}" in self.path:
            return self.path.replace("{model}", model), self.body
        return self.path, {**self.body, "model": model}


def stainless(agent: str, lang: str, **more: str) -> Headers:
    named = {key.replace("_", "-"): value for key, value in more.items()}
    return {"user-agent": agent, "x-stainless-lang": lang, "x-stainless-package-version": "1.0.0", **named}


def schema(member: str) -> Json:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {member: {"type": "string", "description": "The command to run"}},
        "required": [member],
        "additionalProperties": False,
    }


EMPTY: Json = {"type": "object", "properties": {}, "required": []}
