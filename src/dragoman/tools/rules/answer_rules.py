"""Rules about an answer as a whole. The argument rules mend a call; these say what is a call at all.

They are carried out by the tool stage. Like every rule, each can be switched off by name.
"""

from __future__ import annotations

TOOL_NAME = "tool-name"
REPEATED_CALL = "repeated-call"
CALL_IN_TEXT = "call-in-text"
CALL_IN_REASONING = "call-in-reasoning"
MARK_BEFORE_CALL = "mark-before-call"
THINK_TAGS = "think-tags"

ANSWER_RULES: dict[str, str] = {
    TOOL_NAME: "A name in other spelling, with a namespace or control token added, is the tool it must mean.",
    REPEATED_CALL: "A call that comes again, by its id or as text and as a call, is given out once.",
    CALL_IN_TEXT: "A declared tool's call that the model wrote as text, outside code, comes out as a call.",
    CALL_IN_REASONING: "So is one that stands in the reasoning, if nothing follows it.",
    MARK_BEFORE_CALL: "A mark such as <tool_call>, left in the text before the call it opened, is dropped.",
    THINK_TAGS: "Reasoning that opens the text in tags is given out as reasoning.",
}
