"""`GET /sessions` and `dragoman cache`: conversations, their turns, and what the upstream cached of them."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.scripted_upstream import Reply, ScriptedUpstream, status

from dragoman.cli import main
from dragoman.store import Receipt, open_store

TOOL = {"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}}
OTHER = {"name": "Read", "description": "Read.", "input_schema": {"type": "object"}}
SECRET = "sk-proj-" + "a1B2" * 12


@pytest.fixture
def running(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    text = f"""
        [server]
        retries = 0
        [upstreams.up]
        protocol = "anthropic"
        base_url = "{upstream.url}"
        credential = "none"
    """
    with gateway(text, loop) as served:
        yield served


def answer(cached: int | None, fresh: int = 2000) -> Reply:
    """A whole answer that says how much of the prompt came from the cache."""
    usage = {"input_tokens": fresh, "output_tokens": 9} | (
        {} if cached is None else {"cache_read_input_tokens": cached}
    )
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "opus", "stop_reason": "end_turn",
        "stop_sequence": None, "content": [{"type": "text", "text": "Done."}], "usage": usage,
    }  # fmt: skip
    return Reply(steps=(json.dumps(body).encode(),))


def body(turns: int = 1, **more: Any) -> dict[str, Any]:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": f"<system-reminder>Be nice.</system-reminder>\nMend the\n test {SECRET}"}
    ]
    for n in range(turns - 1):
        said += [{"role": "assistant", "content": f"Answer {n}"}, {"role": "user", "content": f"Result {n}"}]
    return {"model": "up/opus", "max_tokens": 50, "tools": [TOOL, OTHER], "messages": said, **more}


def ask(running: Gateway, sent: dict[str, Any], session: str = "one") -> str:
    agent = {
        "x_api_key": SECRET,
        "user_agent": "claude-cli/2.1.0 (external, cli)",
        "x_claude_code_session_id": session,
    }
    return post(f"{running.url}/v1/messages", sent, **agent).headers["x-dragoman-exchange"]


def written(running: Gateway, loop: Loop) -> None:
    loop.run(running.state.observed.ledger.close())


def test_the_turns_of_a_session_and_why_the_cache_missed(
    running: Gateway, upstream: ScriptedUpstream, loop: Loop
) -> None:
    upstream.script(answer(0), answer(2000, 100), answer(0), answer(None), status(500, b"{}"))
    ids = [
        ask(running, body(1)),
        ask(running, body(2)),
        ask(running, body(3, tools=[OTHER, TOOL])),
        ask(running, body(4, tools=[OTHER, TOOL])),
        ask(running, body(5, tools=[OTHER, TOOL])),
    ]
    title = {
        "model": "up/haiku",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "A title, please"}],
    }
    ask(running, title)
    ask(running, body(1), "another")
    written(running, loop)
    newest, row = call(f"{running.url}/sessions").json["sessions"]
    assert newest["turns"] == 1
    assert row["opening"].startswith("Mend the test #")  # in place of the key
    assert SECRET not in json.dumps(row)
    assert (row["profile"], row["models"]) == ("claude-code", ["up/haiku", "up/opus"])
    assert (row["turns"], row["failed"], row["cached"]) == (6, 1, 2000)
    found = call(f"{running.url}/sessions/{row['session']}").json
    assert found["session"] == row
    turns = found["turns"][:5]
    assert [turn["exchange"]["id"] for turn in turns] == ids
    told = [turn["cache"] for turn in turns]
    assert [one["compared"] for one in told] == [None, *ids[:4]]
    assert [one["cause"] for one in told] == [
        "first",
        "same",
        "tools-reordered",
        "not-reported",
        "not-reported",
    ]
    assert [one["hit"] for one in told] == [None, True, False, None, None]
    assert told[2]["sentence"] == "The tool list was reordered: Read moved."
    assert told[2]["same_bytes"] == 0 < told[1]["same_bytes"] < told[1]["prompt_bytes"]
    assert (told[1]["cached"], told[1]["changes"]) == (2000, ["2 new messages"])
    assert found["turns"][5]["cache"]["cause"] == "first"


CONTEXT = "<environment_context>\n  <cwd>/src</cwd>\n</environment_context>"
AGENTS_FILE = "# AGENTS.md instructions for /src\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"
LONG_REMINDER = f"<system-reminder>{'Be nice. ' * 5000}</system-reminder>"


@pytest.mark.parametrize(
    ("said", "opening"),
    [
        ([CONTEXT, "Mend the test"], "Mend the test"),
        ([f"{AGENTS_FILE}{CONTEXT}", "Mend the test", "Again"], "Mend the test"),
        ([f"{LONG_REMINDER}\n{CONTEXT}\nMend the <div> here"], "Mend the <div> here"),
        (["# The plan\n\nMend it"], "# The plan Mend it"),
        ([CONTEXT], ""),
    ],
)
def test_the_first_words_of_a_session_are_the_users(
    running: Gateway, upstream: ScriptedUpstream, loop: Loop, said: list[str], opening: str
) -> None:
    upstream.script(answer(0))
    ask(running, body(messages=[{"role": "user", "content": text} for text in said]))
    written(running, loop)
    (row,) = call(f"{running.url}/sessions").json["sessions"]
    assert row["opening"] == opening


def test_pages_of_sessions(running: Gateway) -> None:
    now = time.time()
    made = [Receipt(f"r{n}", now + n, session=f"{n:016x}", model="m", micros=1) for n in range(25)]
    running.state.store.add_receipts(lambda: made).result()
    seen: list[str] = []
    cursor = ""
    for _ in range(3):
        page = call(f"{running.url}/sessions?limit=10&cursor={cursor}").json
        seen += [row["session"] for row in page["sessions"]]
        cursor = page["next"]
    assert seen == [f"{n:016x}" for n in range(24, -1, -1)]
    assert cursor is None
    assert call(f"{running.url}/sessions?limit=x").status == 400
    assert call(f"{running.url}/sessions/ffffffffffffffff").status == 404


def test_the_command(tmp_path: Path, loop: Loop, upstream: ScriptedUpstream) -> None:
    config = tmp_path / "dragoman.toml"
    config.write_text(
        f'[server]\nstore = "{tmp_path / "store.db"}"\n[upstreams.up]\nprotocol = "anthropic"\n'
        f'base_url = "{upstream.url}"\ncredential = "none"\n'
    )

    def command(*more: str) -> Any:
        return CliRunner().invoke(main, ["cache", "--config", str(config), *more])

    loop.run(open_store(tmp_path / "store.db").close())
    empty = command()
    assert empty.exit_code == 1
    assert "the store has no session yet" in empty.output
    upstream.script(answer(0), answer(0))
    with gateway(config.read_text(), loop) as running:
        ask(running, body(1))
        ask(running, body(2, tools=[TOOL]))
        written(running, loop)
    shown = command()
    assert shown.exit_code == 0, shown.output
    assert "2 turns; 0% of 4,000 prompt tokens came from the cache" in shown.output
    assert "No longer in the tool list: Read." in shown.output
    assert SECRET not in shown.output
    session = json.loads(command("--json").output)["session"]["session"]
    assert command(session).output == shown.output
    assert "the store has no session 'nothing'" in command("nothing").output
