"""Exchanges in AWS's framing, recorded and replayed: the client gets the same bytes again."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from support import aws
from support.plain_http import post
from support.serving import Serve
from support.stand_in import standing_in

from dragoman.cli import main

ASKED = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(
    ("protocol", "path", "body"),
    [
        ("anthropic", "/v1/messages", {**ASKED, "model": "m", "stream": True}),
        ("bedrock-converse", "/v1/messages", {**ASKED, "model": "m", "stream": True}),
        ("anthropic", "/model/m/invoke-with-response-stream", ASKED),
        ("bedrock-converse", "/model/m/invoke-with-response-stream", ASKED),
    ],
)
def test_a_recording_gives_the_same_answer(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, protocol: str, path: str, body: object
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.KEYS["AKIAFIRST"])
    folder = tmp_path / "recordings"
    with standing_in(aws.bedrock) as cloud:
        text = f'record = "{folder}"\n[upstreams.bedrock]\nregion = "us-east-1"\nbase_url = "{cloud.url}"\n'
        with serve(f'{text}credential = "aws"\nprotocol = "{protocol}"') as gateway:
            got = post(gateway.url + path, body)
    assert got.status == 200
    [recording] = [each for each in folder.rglob("*") if each.is_file()]
    replayed = CliRunner().invoke(main, ["replay", str(recording), "--diff"])
    assert replayed.exit_code == 0, replayed.output
    assert aws.KEYS["AKIAFIRST"].encode() not in recording.read_bytes()
