"""The Claude Agent SDK, which includes its own Claude Code."""

import asyncio
import os

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, TextBlock, query
from common import BASE, KEY, MODEL, QUESTION

QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "IS_SANDBOX")
ENV = {"ANTHROPIC_BASE_URL": BASE, "ANTHROPIC_AUTH_TOKEN": KEY, **dict.fromkeys(QUIET, "1")}


async def main() -> None:
    options = ClaudeAgentOptions(
        model=MODEL, allowed_tools=["Bash"], permission_mode="acceptEdits", env=ENV, cwd=os.getcwd()
    )
    for _ in range(2):
        async for message in query(prompt=QUESTION, options=options):
            if isinstance(message, AssistantMessage):
                print("".join(b.text for b in message.content if isinstance(b, TextBlock)))


asyncio.run(main())
