"""The SDKs that people write their own agents with, and the frameworks on top of them."""

from __future__ import annotations

from .agents import ALL_FOUR
from .profile import Profile, Signs

# What Stainless, the generator of OpenAI's and Anthropic's SDKs, puts into every request.
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
            "Its helpers put `index` and `parsed_arguments` into calls, and loops send them back.",
            "Sends no `stream_options` by itself: no usage in streams.",
        ),
    ),
    Profile(
        name="pydantic-ai",
        title="Pydantic AI",
        protocols=ALL_FOUR,
        signs=Signs(headers={"user-agent": ("pydantic-ai/",), **_STAINLESS, **_GENAI}),
        notes=("With Gemini it names itself twice: two `User-Agent` headers.",),
    ),
    Profile(
        name="google-genai",
        title="Google's Gen AI SDKs",
        protocols=("gemini",),
        signs=Signs(headers={"user-agent": ("google-genai-sdk/",), **_GENAI}),
        notes=("The Python SDK asks below `/v1`, and mixes snake_case with camelCase.",),
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
            # With OpenAI's protocols it is that SDK, asked for raw responses and told `stream` in any case.
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
        notes=("Asks Anthropic for arguments as they come (`eager_input_streaming`).",),
    ),
)
