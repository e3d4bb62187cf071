"""Keys that upstreams refuse or repeat: read again once for all requests, and never shown to a client."""

import asyncio
import json
from pathlib import Path

import pytest
from gateway_harness import SHORT, ask, running, soon
from support.scripted_upstream import ScriptedUpstream, slow_headers, status
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES
from test_faults_midstream import cut_within_a_character, spoken

from dragoman.config import loads
from dragoman.credentials import CredentialSource
from dragoman.credentials.secret import Secret

KEY = 'sk-"quoted"-and-secret'
SAID = f"the key {KEY} has been revoked"


def config(url: str, credential: str) -> str:
    lines = ["[server]\nretries = 0"]
    for protocol, name in SHORT.items():
        lines += [
            f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}"\ncredential = {credential}'
        ]
    return "\n".join(lines)


def error_frame(protocol: str) -> bytes:
    error = {"message": SAID, "type": "authentication_error", "code": "invalid_api_key"}
    told: dict[str, object] = {
        ANTHROPIC: {"type": "error", "error": {"type": "authentication_error", "message": SAID}},
        CHAT: {"error": error},
        RESPONSES: {"type": "error", "sequence_number": 9, "param": None, **error} | {"type": "error"},
        GEMINI: {"error": {"code": 401, "message": SAID, "status": "UNAUTHENTICATED"}},
    }
    name = b"event: error\n" if protocol in (ANTHROPIC, RESPONSES) else b""
    return name + b"data: " + json.dumps(told[protocol]).encode() + b"\n\n"


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_key_repeated_in_mid_stream_is_not_shown(upstream: str, client: str) -> None:
    at = cut_within_a_character(upstream).rindex(b"\n\n") + 2

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with served, running(config(served.url, '"env:KEY"'), {"KEY": KEY}) as here:
            served.script([spoken(upstream)[:at], error_frame(upstream)])
            got = await ask(here, client, f"{SHORT[upstream]}/m")
            assert served.last.key == KEY
            assert got.is_broken_off() == f"the key {Secret(KEY)} has been revoked"
            assert b"and-secret" not in got.body

    asyncio.run(scene())


def test_a_token_that_was_just_renewed_is_not_renewed_again(tmp_path: Path) -> None:
    """Ten requests are refused with the old token in turn: the command runs twice, not eleven times."""
    runs = tmp_path / "runs"
    command = tmp_path / "token"
    command.write_text(f'#!/bin/sh\necho x >> {runs}\necho "token-$(wc -l < {runs} | tr -d " ")"\n')
    command.chmod(0o755)

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with served, running(config(served.url, json.dumps(f"command:{command}"))) as here:
            served.script(*[slow_headers(0.02 * n, status(401)) for n in range(10)])
            got = await asyncio.gather(*(ask(here, CHAT, "c/demo", stream=False) for _ in range(10)))
            assert [answer.status for answer in got] == [200] * 10
            assert runs.read_text().count("x") == 2
            assert [seen.key for seen in served.seen] == ["token-1"] * 10 + ["token-2"] * 10

    asyncio.run(scene())


class Slow:
    """A source that records how it was closed."""

    def __init__(self) -> None:
        self.closed: list[bool] = []

    async def close(self, *, wait: bool = False) -> None:
        self.closed.append(wait)


def test_a_credential_is_closed_with_its_config(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, list[Slow]] = {}

    def opening(spec: object, *, name: str, **rest: object) -> CredentialSource:
        from dragoman.credentials import NoCredential

        class Source(Slow, NoCredential):
            pass

        source = Source()
        opened.setdefault(name, []).append(source)
        return source

    monkeypatch.setattr("dragoman.gateway.upstreams.keyring.open_credential", opening)

    async def scene() -> None:
        async with ScriptedUpstream(pace=1) as served:
            async with running(config(served.url, '"none"')) as here:
                for name in ("c/demo", "a/demo"):
                    assert (await ask(here, CHAT, name)).status == 200
                changed = config(served.url, '"none"').replace(
                    'protocol = "anthropic"\n', 'protocol = "anthropic"\nidle_timeout = "9s"\n'
                )
                here.state.replace(loads(changed, env={}))
                assert (await ask(here, CHAT, "a/demo")).status == 200
                assert len(opened["a"]) == 1, "the credential is unchanged"
                here.state.replace(loads(changed.replace("[upstreams.c]", "[upstreams.d]"), env={}))
                assert await soon(lambda: opened["c"][0].closed == [True])
                assert opened["a"][0].closed == []
            assert opened["a"][0].closed == [False]
            assert opened["c"][0].closed == [True]

    asyncio.run(scene())
