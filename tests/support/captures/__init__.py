"""First requests of real clients, head and body, reduced to what identifies them.

Each asks to run a command, if the client has a tool for that. `CAPTURES[name]` has the client's profile. The
client's handling of the answer is in `agent_turns.py`.
"""

from .anthropic import ANTHROPIC
from .capture import TASK, Capture
from .chat import CHAT
from .gemini import GEMINI
from .responses import RESPONSES

CAPTURES: dict[str, Capture] = {**ANTHROPIC, **CHAT, **RESPONSES, **GEMINI}

__all__ = ["CAPTURES", "TASK", "Capture"]
