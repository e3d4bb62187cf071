"""Without a credential of a cloud, no library of a cloud is imported."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from dragoman.config import loads
from dragoman.gateway.process.listener import GatewayServer
from dragoman.gateway.state import State
import dragoman.cli, dragoman.cli.commands

async def main():
    state = State(loads('''
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "http://127.0.0.1:1"
        {upstream}
    ''', env={{}}), env={{}})
    server = GatewayServer(state)
    await server.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.address.rpartition(":")[2]))
    body = b'{{"model":"{model}","messages":[{{"role":"user","content":"x"}}]}}'
    writer.write(b"POST /v1/chat/completions HTTP/1.1\\r\\nhost: localhost\\r\\n"
        b"content-type: application/json\\r\\ncontent-length: %d\\r\\n"
        b"connection: close\\r\\n\\r\\n" % len(body) + body)
    print((await reader.read()).split()[1].decode())
    await server.stop(1)

asyncio.run(main())
clouds = {{"botocore", "boto3", "google.auth", "azure.identity", "azure.core", "requests", "urllib3"}}
print(sorted(clouds & sys.modules.keys()))
"""
BEDROCK = '[upstreams.bedrock]\nregion = "us-east-1"\nbase_url = "http://127.0.0.1:1"\n'
AWS = 'credential = "aws"'


def run(upstream: str = "", model: str = "up/m") -> list[str]:
    program = PROGRAM.format(upstream=upstream, model=model)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("upstream", "model"),
    [
        ("", "up/m"),
        # Configured, but not asked yet: the library is imported with the first request that needs it.
        (BEDROCK + AWS, "up/m"),
        (BEDROCK + 'credential = "none"', "bedrock/anthropic.m"),
    ],
)
def test_nothing_of_a_cloud_is_imported(upstream: str, model: str) -> None:
    status, imported = run(upstream, model)
    assert status == "502"  # nothing listens there
    assert imported == "[]"


def test_the_check_can_fail() -> None:
    _, imported = run(BEDROCK + AWS, "bedrock/anthropic.m")
    assert "botocore" in imported
