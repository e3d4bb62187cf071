"""For agent authors: read tool calls from any SDK's stream, and run them safely in a loop."""

from ..tools.rules import Fix
from .adapters import ToolAnswer
from .buffer import ToolCallBuffer
from .calls import CompleteCall, FailedCall, PartialCall
from .loop import Run, Step, ToolLoop
from .signatures import LocalTool, local_tool

__all__ = [
    "CompleteCall",
    "FailedCall",
    "Fix",
    "LocalTool",
    "PartialCall",
    "Run",
    "Step",
    "ToolAnswer",
    "ToolCallBuffer",
    "ToolLoop",
    "local_tool",
]
