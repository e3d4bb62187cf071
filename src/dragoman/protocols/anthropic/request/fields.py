"""The fields of an Anthropic request, and the parts of the neutral request that each holds."""

from __future__ import annotations

from ...facts import CacheMark, FieldNames, PromptForm

FIELDS: FieldNames = {
    "model": ("model",),
    "messages": ("messages",),
    "system": ("system",),
    "tools": ("tools",),
    "mcp_servers": ("tools",),
    "tool_choice": ("tool_choice", "parallel_tool_calls"),
    "max_tokens": ("max_tokens",),
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "top_k": ("top_k",),
    "stop_sequences": ("stop",),
    "thinking": ("reasoning",),
    "output_config": ("reasoning", "format"),
    "output_format": ("format",),
    # Only an upstream of this protocol gets other members of `metadata`.
    "metadata": ("user",),
    "service_tier": ("service_tier",),
    "speed": ("service_tier",),
    "cache_control": ("cache",),
    "stream": ("stream",),
}

PROMPT = PromptForm(marks=(CacheMark("cache_control"),))
