"""The fields of a Gemini request, and the parts of the neutral request that each holds."""

from __future__ import annotations

from ...facts import IN_PATH, FieldNames, PromptForm

FIELDS: FieldNames = {
    # `models/NAME:streamGenerateContent` names the model, and says whether the answer is a stream.
    IN_PATH: ("model", "stream"),
    "model": ("model",),
    "contents": ("messages",),
    "systemInstruction": ("system",),
    "tools": ("tools",),
    "toolConfig": ("tool_choice",),
    "generationConfig.maxOutputTokens": ("max_tokens",),
    "generationConfig.temperature": ("temperature",),
    "generationConfig.topP": ("top_p",),
    "generationConfig.topK": ("top_k",),
    "generationConfig.presencePenalty": ("presence_penalty",),
    "generationConfig.frequencyPenalty": ("frequency_penalty",),
    "generationConfig.seed": ("seed",),
    "generationConfig.candidateCount": ("n",),
    "generationConfig.stopSequences": ("stop",),
    "generationConfig.responseLogprobs": ("logprobs",),
    "generationConfig.logprobs": ("logprobs",),
    "generationConfig.responseMimeType": ("format",),
    "generationConfig.responseSchema": ("format",),
    "generationConfig.responseJsonSchema": ("format",),
    "generationConfig.responseModalities": ("audio_out",),
    "generationConfig.thinkingConfig": ("reasoning",),
    "labels": ("metadata",),
    "store": ("store",),
    "serviceTier": ("service_tier",),
}

PROMPT = PromptForm(tools="functionDeclarations")
