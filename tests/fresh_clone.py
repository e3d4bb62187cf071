"""`make test-readme`: runs the README's two commands, unchanged, in a fresh clone.

The clone holds only committed files. The environment holds a path, a home and the settings of the package
index. The demo must print a curl line that works, and the exchange must be in the inspector. `--demo` ends
after that, and prints the time from the clone to the first mended call.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from support.manual import ROOT, blocks, script

KEPT = re.compile(r"PATH|HOME|LANG|LC_.*|TMPDIR|PIP_.*|UV_.*|XDG_CACHE_HOME|SSL_.*|.*_proxy", re.IGNORECASE)
_BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - _BEGAN:6.1f} s  {text}", flush=True)


def two_commands() -> list[str]:
    """The first shell block of the README."""
    first = next(block for block in blocks("console") if block.page == "README.md")
    return [shlex.join(shlex.split(line, comments=True)) for line in script(first).splitlines() if line]


def environment(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if KEPT.fullmatch(name)} | more


@contextlib.contextmanager
def running(command: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `command` on a free port, passed by `ARGS`: port 4545 may be in use."""
    process = subprocess.Popen(
        command.split(),
        cwd=folder,
        env=environment(ARGS="--port 0", PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def printed_addresses(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The curl line and the inspector's address, once both are printed."""
    assert process.stdout is not None
    curl = ""
    for line in process.stdout:
        curl = line.strip() if line.strip().startswith("curl ") and not curl else curl
        if found := re.fullmatch(r"\s+(http://\S+/inspector)\s*", line):
            return curl, found[1]
    raise SystemExit("the demo ended without saying what to try")


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def try_the_demo(command: str, folder: Path) -> None:
    """Run the demo until its first call is mended and the inspector shows it."""
    with running(command, folder) as process:
        curl, inspector = printed_addresses(process)
        say(f"`{command}` says what to try")
        done = subprocess.run(shlex.split(curl), capture_output=True, text=True, check=True, timeout=60)
        deltas = re.findall(r'"partial_json":("(?:[^"\\]|\\.)*")', done.stdout)
        arguments = json.loads("".join(map(json.loads, deltas)))
        say(f"its curl line gives a call with {arguments}")
        listed = json.loads(get(inspector.replace("/inspector", "/exchanges?mended=1")))["exchanges"]
        assert b"<title>" in get(inspector)
        assert [exchange["rules"] for exchange in listed] == [["tool-alias"]], listed
        say(f"the inspector has it: {inspector}#{listed[0]['id']}")


def main() -> None:
    demo, test = two_commands()
    # A shell starts background jobs with SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fresh-clone-") as place:
        folder = Path(place) / "dragoman"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
        say("cloned")
        try_the_demo(demo, folder)
        if "--demo" in sys.argv:
            return
        done = subprocess.run(test.split(), cwd=folder, env=environment(), check=False)
        say(f"`{test}` ends with {done.returncode}")
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
