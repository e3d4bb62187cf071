"""Rules about the whole answer. Argument rules mend a call; these rules decide what is a call.

The tool stage applies them. Like every rule, each can be switched off by name.
"""

from __future__ import annotations

# Causes: `default.` or `functions.` before the name (opencodex#4181), a harmony token behind it (vllm#32587),
# the wrong case (CLIProxyAPI#1579).
TOOL_NAME = "tool-name"
# The final chunk repeats the whole call with the same id: litellm#22553.
REPEATED_CALL = "repeated-call"
CALL_IN_TEXT = "call-in-text"
# vllm#55759, qwen-code#6548.
CALL_IN_REASONING = "call-in-reasoning"
# A server's streaming tool parser may leave the opening mark in the text.
MARK_BEFORE_CALL = "mark-before-call"
THINK_TAGS = "think-tags"

ANSWER_RULES: dict[str, str] = {
    TOOL_NAME: "A tool name with another spelling, a namespace or a control token becomes the declared name.",
    REPEATED_CALL: "A call that arrives twice (same id, or as text and as a call) reaches the client once.",
    CALL_IN_TEXT: "A call of a declared tool that the model wrote as text, outside code, becomes a call.",
    CALL_IN_REASONING: "A call of a declared tool in the reasoning becomes a call, if nothing follows it.",
    MARK_BEFORE_CALL: "A mark such as <tool_call> at the end of the text before a call is dropped.",
    THINK_TAGS: "Reasoning in tags at the beginning of the text becomes reasoning.",
}
