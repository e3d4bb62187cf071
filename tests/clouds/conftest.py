"""A machine without any cloud's credentials, and a gateway before a stand-in for a cloud."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
from botocore.httpsession import URLLib3Session
from support.gateways import Gateway, Loop, gateway
from support.serving import Serve

_CLOUDS = ("AWS_", "GOOGLE_", "GCE_", "CLOUDSDK_", "AZURE_", "IDENTITY_", "MSI_", "ANTHROPIC_", "OPENAI_")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable and no file of this machine names a cloud account."""
    for name in list(os.environ):
        if name.startswith(_CLOUDS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the connections of every SDK's client, which the tests leave open."""
    opened: list[Any] = []

    def noting(kind: Any) -> None:
        begin = kind.__init__

        def init(self: Any, *arguments: Any, **named: Any) -> None:
            begin(self, *arguments, **named)
            opened.append(self)

        monkeypatch.setattr(kind, "__init__", init)

    for kind in (httpx2.Client, requests.Session, URLLib3Session):
        noting(kind)
    yield
    for client in opened:
        client.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    running = Loop()
    yield running
    running.close()


@pytest.fixture
def serve(loop: Loop) -> Serve:
    """Serve by a config, with the environment of this process."""

    def serving(config: str) -> AbstractContextManager[Gateway]:
        return gateway(f"[server]\nretries = 0\n{config}", loop, env=dict(os.environ))

    return serving
