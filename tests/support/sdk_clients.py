"""Clients of the official SDKs for a local server."""

from collections.abc import Callable
from typing import Any, TypeVar

import anthropic
import openai
from google import genai
from google.genai import types

from dragoman.conform.shape import Json

from .wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

T = TypeVar("T")


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


_opened: list[Any] = []


def client(protocol: str, url: str, *, is_async: bool = False, shared: bool = False) -> Any:
    """A client. One that is neither async nor `shared` by tests is closed when the test ends."""
    made = _CLIENTS[protocol](url, is_async)
    return made if is_async or shared else closed_after_test(made)


def closed_after_test(client: T) -> T:
    """Close this client when the test ends. Its sockets would warn in whichever test they are freed in."""
    _opened.append(client)
    return client


def close_all() -> None:
    while _opened:
        _opened.pop().close()


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
