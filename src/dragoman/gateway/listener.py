"""The gateway on its port or Unix socket, from the first request to a shutdown that lets answers finish."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from errno import EADDRINUSE
from pathlib import Path

from ..config.types import ServerConfig, TlsConfig
from ..model.errors import DragomanError
from ..transport.server import Limits, Listener
from ..transport.server.forwarded import TrustedProxies
from .app import App
from .state import State

# Descriptors that are not a client's connection or the upstream's behind it: files, pipes, the store.
_OTHER_DESCRIPTORS = 64


class GatewayServer:
    """One process's share of it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._server = server = state.config.server
        limits = Limits(
            body=server.max_body,
            connections=_affordable(server.max_connections),
            patience=server.client_timeout,
        )
        self._listener = Listener(App(state).answer, limits, TrustedProxies(server.trusted_proxies))

    async def listen(self, host: str, port: int, *, shared_port: bool = False) -> None:
        """On the Unix socket of the config, if it names one, else on `port`. An OSError if that cannot be."""
        server = self._server
        tls = _tls(server.tls) if server.tls else None
        if server.unix is None:
            await self._listener.listen(host, port, reuse_port=shared_port, tls=tls)
        else:
            _free(server.unix)
            await self._listener.listen_unix(str(server.unix), tls=tls)
            server.unix.chmod(0o600)

    @property
    def address(self) -> str:
        """Where it can be reached, as a URL, or `unix:PATH`."""
        return listener_url(self._server, self._listener)

    async def stop(self, grace: float) -> None:
        """Answers under way may take `grace` seconds; who only looks on is not waited for."""
        self._state.announce_stop()
        try:
            await self._listener.stop(grace)
        finally:
            await self._state.close()
            if self._server.unix is not None:
                with contextlib.suppress(OSError):
                    self._server.unix.unlink()


def listener_url(server: ServerConfig, listener: Listener) -> str:
    if server.unix is not None:
        return f"unix:{server.unix}"
    return address_of(*listener.address, secure=server.tls is not None)


def address_of(host: str, port: int, *, secure: bool = False) -> str:
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _affordable(connections: int) -> int:
    """No more connections than there are descriptors for, each with one to an upstream."""
    try:
        import resource
    except ImportError:  # not on Windows
        return connections
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, (most - _OTHER_DESCRIPTORS) // 2))


def _tls(files: TlsConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for file in (files.cert, files.key):
        if not os.access(file, os.R_OK):
            raise DragomanError(
                f"server.tls names {file}, which cannot be read; check the path and its rights"
            )
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except ssl.SSLError as error:
        why = error.reason or "it is not PEM"
        raise DragomanError(
            f"server.tls: {files.cert} and {files.key} are no certificate and its key ({why}); "
            "both must be PEM, belong together, and need no password"
        ) from None
    return context


def _no_password() -> str:
    return ""


def _free(path: Path) -> None:
    """Remove the socket of a gateway that has ended. One that answers is left alone."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise OSError(EADDRINUSE, "in use")
