"""The command line: one module or folder per command. `commands` lists them."""

from .commands import main

__all__ = ["main"]
