"""Clients of the official SDKs for a local server."""

from collections.abc import Callable
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

from dragoman.conform.shape import Json

from .wires import ANTHROPIC, CHAT, GEMINI, RESPONSES


def _anthropic(url: str, is_async: bool) -> Any:
    kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
    return kind(api_key="k", base_url=url, max_retries=0)


def _openai(url: str, is_async: bool) -> Any:
    kind = openai.AsyncOpenAI if is_async else openai.OpenAI
    return kind(api_key="k", base_url=f"{url}/v1", max_retries=0)


def _gemini(url: str, is_async: bool) -> Any:
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))


_CLIENTS: dict[str, Callable[[str, bool], Any]] = {
    ANTHROPIC: _anthropic,
    CHAT: _openai,
    RESPONSES: _openai,
    GEMINI: _gemini,
}
SETTINGS: dict[str, Json] = {
    ANTHROPIC: {"model": "m", "max_tokens": 1024},
    CHAT: {"model": "m"},
    RESPONSES: {"model": "m"},
    GEMINI: {"model": "m"},
}


def client(protocol: str, url: str, *, is_async: bool = False) -> Any:
    return _CLIENTS[protocol](url, is_async)


def ask(protocol: str, sdk: Any, *, stream: bool) -> Any:
    """Send one question through the SDK. Returns the stream's iterator or the whole response."""
    settings: Json = SETTINGS[protocol]
    chat = [{"role": "user", "content": "x"}]
    match protocol:
        case "anthropic":
            return sdk.messages.create(**settings, messages=chat, stream=stream)
        case "openai-chat":
            return sdk.chat.completions.create(**settings, messages=chat, stream=stream)
        case "openai-responses":
            return sdk.responses.create(**settings, input="x", stream=stream)
        case _:
            create = sdk.models.generate_content_stream if stream else sdk.models.generate_content
            return create(**settings, contents="x")


async def close(sdk: Any) -> None:
    """Close an async client in its event loop."""
    await (sdk.aio.aclose() if hasattr(sdk, "aio") else sdk.close())
