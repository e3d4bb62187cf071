"""What every SDK script shares: where the gateway is, the question, and the one tool."""

import os
import subprocess

BASE, KEY, MODEL = os.environ["BASE"], os.environ["KEY"], os.environ["MODEL"]
QUESTION = "Run the command `echo well done >> proof.txt`"
TOOL, ABOUT = "run_shell", "Run a shell command and return what it printed."
SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string", "description": "The command"}},
    "required": ["command"],
    "additionalProperties": False,
}


def shell(command: str) -> str:
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr or "(no output)"
