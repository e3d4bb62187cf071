"""The fields of a Chat request, and the parts of the neutral request that each holds."""

from __future__ import annotations

from ...common.cache_breakpoints import OPENAI_MARK
from ...facts import CacheMark, FieldNames, PromptForm

FIELDS: FieldNames = {
    "model": ("model",),
    "messages": ("messages", "system"),
    "tools": ("tools",),
    "functions": ("tools",),
    "web_search_options": ("tools",),
    "tool_choice": ("tool_choice",),
    "function_call": ("tool_choice",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "max_completion_tokens": ("max_tokens",),
    "max_tokens": ("max_tokens",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "presence_penalty": ("presence_penalty",),
    "frequency_penalty": ("frequency_penalty",),
    "logit_bias": ("logit_bias",),
    "logprobs": ("logprobs",),
    "top_logprobs": ("logprobs",),
    "seed": ("seed",),
    "n": ("n",),
    "stop": ("stop",),
    "reasoning_effort": ("reasoning",),
    "response_format": ("format",),
    "verbosity": ("verbosity",),
    "service_tier": ("service_tier",),
    "user": ("user",),
    "safety_identifier": ("user",),
    "metadata": ("metadata",),
    "prompt_cache_key": ("cache_key",),
    "modalities": ("audio_out",),
    "audio": ("audio_out",),
    "store": ("store",),
    "stream": ("stream",),
    # Dragoman always asks for usage, and gives it to the clients that asked for it.
    "stream_options": ("include_usage",),
}

# OpenRouter and others take the marks of Anthropic.
PROMPT = PromptForm(marks=(OPENAI_MARK, CacheMark("cache_control")), tool="function")
