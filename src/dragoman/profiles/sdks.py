"""The SDKs and frameworks that people build their own agents with."""

from __future__ import annotations

from .agents import ALL_FOUR
from .profile import Profile, Signs

# Stainless generates OpenAI's and Anthropic's SDKs, and adds this header to every request.
_STAINLESS = {"x-stainless-lang": ("",)}
_GENAI = {"x-goog-api-client": ("google-genai-sdk/",)}

SDKS: tuple[Profile, ...] = (
    Profile(
        name="anthropic",
        title="Anthropic's SDKs",
        protocols=("anthropic",),
        signs=Signs(headers={"user-agent": ("Anthropic/",), **_STAINLESS}),
        notes=("The Python SDK sends its key as a bearer token.",),
    ),
    Profile(
        name="openai",
        title="OpenAI's SDKs",
        protocols=("openai-chat", "openai-responses"),
        signs=Signs(headers={"user-agent": ("OpenAI/",), **_STAINLESS}),
        notes=(
            "Its helpers add `index` and `parsed_arguments` to calls, and agent loops send them back.",
            "Does not send `stream_options` by default, so streams have no usage.",
        ),
    ),
    Profile(
        name="pydantic-ai",
        title="Pydantic AI",
        protocols=ALL_FOUR,
        signs=Signs(headers={"user-agent": ("pydantic-ai/",), **_STAINLESS, **_GENAI}),
        notes=("With Gemini it sends two `User-Agent` headers.",),
    ),
    Profile(
        name="google-genai",
        title="Google's Gen AI SDKs",
        protocols=("gemini",),
        signs=Signs(headers={"user-agent": ("google-genai-sdk/",), **_GENAI}),
        notes=("The Python SDK uses paths below `/v1`, and mixes snake_case with camelCase.",),
    ),
    Profile(
        name="openai-agents",
        title="OpenAI Agents SDK",
        protocols=("openai-chat", "openai-responses"),
        signs=Signs(headers={"user-agent": ("Agents/",), **_STAINLESS}),
    ),
    Profile(
        name="langchain",
        title="LangChain",
        protocols=("openai-chat", "openai-responses", "anthropic"),
        signs=Signs(
            # For OpenAI's protocols LangChain uses that SDK with raw responses, and always sends `stream`.
            headers={
                "user-agent": ("langchain-", "OpenAI/Python"),
                "x-stainless-raw-response": ("true", "raw"),
            },
            fields=frozenset({"stream"}),
        ),
    ),
    Profile(
        name="ai-sdk",
        title="Vercel AI SDK",
        protocols=ALL_FOUR,
        signs=Signs(
            headers={"user-agent": ("ai-sdk/",), "sec-fetch-mode": ("cors",)},
            fields=frozenset({"tool_choice", "toolConfig"}),
        ),
        notes=("Requests live arguments from Anthropic (`eager_input_streaming`).",),
    ),
)
