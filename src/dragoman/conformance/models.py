"""Which model to ask for where nobody named one: the first the endpoint lists, else a well-known one."""

from __future__ import annotations

from .asking import Asker
from .shape import ANTHROPIC, CHAT, CURSOR, GEMINI, RESPONSES, Json, UnreadableError, entries, is_object, load

PATHS = {
    ANTHROPIC: "/v1/models",
    CHAT: "/v1/models",
    CURSOR: "/v1/models",
    RESPONSES: "/v1/models",
    GEMINI: "/v1beta/models",
}
_FALLBACK = {
    ANTHROPIC: "claude-sonnet-4-5",
    CHAT: "gpt-5-mini",
    CURSOR: "gpt-5-mini",
    RESPONSES: "gpt-5-mini",
    GEMINI: "gemini-2.5-flash",
}


async def choose(asker: Asker) -> str:
    """A model to ask for."""
    got = await asker.get(PATHS[asker.protocol])
    names = listed(asker.protocol, got.body) if got.status == 200 and not got.cut else []
    return names[0] if names else _FALLBACK[asker.protocol]


def listed(protocol: str, body: bytes) -> list[str]:
    """The models a list names; none where it has not the protocol's form."""
    try:
        value = load(body)
        if not is_object(value):
            return []
        if protocol == GEMINI:
            found = [entry["name"] for entry in entries(value, "models") if _answers(entry)]
        else:
            found = [entry["id"] for entry in entries(value, "data")]
    except (UnreadableError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        return []
    return [name.removeprefix("models/") for name in found if isinstance(name, str) and name]


def _answers(entry: Json) -> bool:
    """Google also lists models that make images or vectors only."""
    methods: list[str] | None = entry.get("supportedGenerationMethods")
    return not methods or "generateContent" in methods
