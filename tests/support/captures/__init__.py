"""First requests as real clients send them, head and body, cut down to what tells them apart.

Each asks for a command to be run, where it has a tool for that. `CAPTURES[name]` has the profile of who sent
it; what it does with the answer is in `agent_turns.py`.
"""

from .anthropic import ANTHROPIC
from .capture import TASK, Capture
from .chat import CHAT
from .gemini import GEMINI
from .responses import RESPONSES

CAPTURES: dict[str, Capture] = {**ANTHROPIC, **CHAT, **RESPONSES, **GEMINI}

__all__ = ["CAPTURES", "TASK", "Capture"]
