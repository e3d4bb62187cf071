"""The fields of a Converse request, and the parts of the neutral request that each holds."""

from __future__ import annotations

from ...facts import IN_PATH, CacheMark, FieldNames, PromptForm

FIELDS: FieldNames = {
    # `/model/NAME/converse-stream` names the model, and says whether the answer is a stream.
    IN_PATH: ("model", "stream"),
    "messages": ("messages",),
    "system": ("system",),
    "inferenceConfig.maxTokens": ("max_tokens",),
    "inferenceConfig.temperature": ("temperature",),
    "inferenceConfig.topP": ("top_p",),
    "inferenceConfig.stopSequences": ("stop",),
    "toolConfig.tools": ("tools",),
    "toolConfig.toolChoice": ("tool_choice",),
    "additionalModelRequestFields": ("reasoning",),
    "additionalModelResponseFieldPaths": ("stop",),
    "outputConfig.effort": ("reasoning",),
    "outputConfig.textFormat": ("format",),
    "serviceTier": ("service_tier",),
}

PROMPT = PromptForm(marks=(CacheMark("cachePoint", alone=True),), tool="toolSpec")
