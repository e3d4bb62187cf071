"""The gateway on its port or Unix socket."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from errno import EADDRINUSE
from pathlib import Path

from ...config.types import ServerConfig, TlsConfig
from ...model.errors import DragomanError
from ...transport.server import Listener, ServerLimits
from ...transport.server.forwarded import TrustedProxies
from ..app import App
from ..state import State

# File descriptors for everything but connections: files, pipes, the store.
_OTHER_DESCRIPTORS = 64


class GatewayServer:
    """The server of one process."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._server = server = state.config.server
        limits = ServerLimits(
            body=server.max_body,
            connections=_max_connections(server.max_connections),
            timeout=server.client_timeout,
        )
        self._listener = Listener(App(state).answer, limits, TrustedProxies(server.trusted_proxies))

    async def listen(self, host: str, port: int, *, shared_port: bool = False) -> None:
        """Listen on the Unix socket of the config, else on `port`. Raises OSError if that is not possible."""
        server = self._server
        tls = _tls(server.tls) if server.tls else None
        if server.unix is None:
            await self._listener.listen(host, port, reuse_port=shared_port, tls=tls)
        else:
            _remove_stale_socket(server.unix)
            try:
                await self._listener.listen_unix(str(server.unix), tls=tls)
            except NotImplementedError:
                raise DragomanError(
                    "server.unix: this system has no Unix sockets; use server.host and server.port"
                ) from None
            server.unix.chmod(0o600)  # other users of the machine must not spend this user's keys

    @property
    def address(self) -> str:
        """A URL, or `unix:PATH`."""
        return listener_url(self._server, self._listener)

    def drain(self) -> None:
        """Go on serving, but tell load balancers at `/readyz` to send nothing more."""
        self._state.lifecycle.draining = True

    async def stop(self, grace: float) -> None:
        """Stop. Running answers may take `grace` more seconds; live feeds end at once."""
        self._state.lifecycle.announce_stop()
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


def _max_connections(connections: int) -> int:
    """Lower `connections` to what the descriptor limit allows: each may need one more to an upstream."""
    try:
        import resource
    except ImportError:  # not on Windows
        return connections
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft_limit == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, (soft_limit - _OTHER_DESCRIPTORS) // 2))


def _tls(files: TlsConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    for file in (files.cert, files.key):
        if not os.access(file, os.R_OK):
            raise DragomanError(
                f"server.tls names {file}, which cannot be read; check the path and its permissions"
            )
    try:
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except ssl.SSLError as error:
        why = error.reason or "it is not PEM"
        raise DragomanError(
            f"server.tls: {files.cert} and {files.key} are not a certificate and its key ({why}); "
            "both must be PEM files without a password, and must belong together"
        ) from None
    return context


def _no_password() -> str:
    # Without this, OpenSSL would ask for the password on the terminal.
    return ""


def _remove_stale_socket(path: Path) -> None:
    """Remove the socket file of a gateway that has ended. Raises OSError if a gateway still uses it."""
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
