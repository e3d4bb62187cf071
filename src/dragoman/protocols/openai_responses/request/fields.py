"""The fields of a Responses request, and the parts of the neutral request that each holds."""

from __future__ import annotations

from ...common.cache_breakpoints import OPENAI_MARK
from ...facts import FieldNames, PromptForm

FIELDS: FieldNames = {
    "model": ("model",),
    "input": ("messages", "system"),
    "instructions": ("system",),
    "tools": ("tools",),
    "tool_choice": ("tool_choice",),
    "parallel_tool_calls": ("parallel_tool_calls",),
    "max_output_tokens": ("max_tokens",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_logprobs": ("logprobs",),
    "reasoning": ("reasoning",),
    "text": ("format", "verbosity"),
    "service_tier": ("service_tier",),
    "user": ("user",),
    "safety_identifier": ("user",),
    "metadata": ("metadata",),
    "prompt_cache_key": ("cache_key",),
    "store": ("store",),
    "background": ("background",),
    "previous_response_id": ("previous_response_id",),
    "stream": ("stream",),
}

PROMPT = PromptForm(marks=(OPENAI_MARK,))
