"""How the official SDKs find a server: data only."""

from __future__ import annotations

from typing import NamedTuple


class SdkVariables(NamedTuple):
    """Where an SDK reads its base URL and its key."""

    path: str
    """What the base URL has after the server's address. Some SDKs add the version themselves."""
    url_variable: str
    key_variable: str


SDKS: dict[str, SdkVariables] = {
    "anthropic": SdkVariables("", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "openai-chat": SdkVariables("/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "openai-responses": SdkVariables("/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "gemini": SdkVariables("", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
}
"""By protocol."""
