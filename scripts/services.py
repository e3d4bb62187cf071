"""The services that `make test-services` needs: Debian packages, and servers on loopback ports of their own.

As a program it installs what is missing. As a module it starts and stops servers. It does not touch the
machine's own services: each server has a temporary folder and a free port, and ends with this process.
"""

from __future__ import annotations

import atexit
import glob
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SECONDS = 30.0
_POLICY = Path("/usr/sbin/policy-rc.d")


def found(*names: str) -> str | None:
    """The first of these programs that there is. Debian keeps PostgreSQL's off the PATH, nginx in sbin."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=_version, reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), *folders, "/usr/sbin", "/usr/local/sbin"])
    return next((place for name in names if (place := shutil.which(name, path=path))), None)


def _version(folder: str) -> float:
    try:
        return float(Path(folder).parent.name)
    except ValueError:
        return 0.0


WANTED: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("initdb",), ("postgresql",)),
    (("valkey-server", "redis-server"), ("valkey-server", "redis-server")),
    (("pgbouncer",), ("pgbouncer",)),
    (("nginx",), ("nginx-light", "nginx")),
)
"""Programs, of which one is needed, and the packages that have one, the best first."""


def install() -> int:
    """Install what is missing. Returns the exit code."""
    missing = [(programs, packages) for programs, packages in WANTED if not found(*programs)]
    if not missing:
        return 0
    names = " ".join(packages[-1] for _, packages in missing)
    if shutil.which("apt-get") is None:
        return _say(f"these programs are missing: {' '.join(p[-1] for p, _ in missing)}; install them")
    if os.geteuid() != 0:
        return _say(f"these packages are missing: sudo apt-get install {names}")
    with _Quiet():
        for programs, packages in missing:
            if not _apt(packages):
                return _say(
                    f"apt-get could install none of {', '.join(packages)}, one of which has {programs[-1]}"
                )
    return 0


def _apt(packages: Sequence[str]) -> bool:
    """Install the first package that exists. If that fails, try again with a fresh index."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for update in (False, True):
        if update and _run(["apt-get", "update", "-qq"], environment):
            print("apt-get update failed; trying with the index that is there", file=sys.stderr)
        for package in packages:
            if not _run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", package], environment):
                return True
    return False


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    print("·", " ".join(command), file=sys.stderr)
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


class _Quiet:
    """Keeps the packages from starting servers of the machine."""

    def __enter__(self) -> None:
        self._made = not _POLICY.exists()
        if self._made:
            _POLICY.write_text("#!/bin/sh\nexit 101\n")
            _POLICY.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self._made:
            _POLICY.unlink(missing_ok=True)


def _say(text: str) -> int:
    print(f"make test-services needs PostgreSQL, Valkey or Redis, and nginx: {text}", file=sys.stderr)
    return 1


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: the account to run as, for subprocess."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")


class Server:
    """A server in a folder of its own, on a loopback port that it keeps when it is started again."""

    name: str
    stop_signal = signal.SIGTERM

    def __init__(self) -> None:
        self.port = free_port()
        self.account = unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix=f"dragoman-{self.name}-"))
        if self.account:
            os.chown(self.folder, self.account["user"], self.account["group"])
        self.process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def answers(self) -> bool:
        """Does it take connections?"""
        with socket.socket() as client:
            client.settimeout(1)
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                **self.account,
            )  # fmt: skip
        # It reads from a pipe that ends with this process, however this process ends.
        self._guard = subprocess.Popen(
            ["sh", "-c", f"read _; kill -{self.stop_signal.name[3:]} {self.process.pid}"],
            stdin=subprocess.PIPE, **self.account,
        )  # fmt: skip
        until = time.monotonic() + _SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"{self.name} did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(_SECONDS)
        self._forget()

    def _forget(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        self.process = self._guard = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(Server):
    """A PostgreSQL with one user, who has a password."""

    name = "postgres"
    stop_signal = signal.SIGINT  # "fast": it ends the connections
    password = f"p@ss/{secrets.token_hex(8)}"
    _template: Path | None = None

    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.settings = {"fsync": "off", "shared_buffers": "64MB", "max_connections": "100", **settings}
        copy = ["cp", "-a", str(self._initialised()), str(self.folder / "data")]
        subprocess.run(copy, check=True, **self.account)

    @classmethod
    def _initialised(cls) -> Path:
        """A folder that `initdb` made, once for all servers of this process: it takes seconds."""
        if cls._template is None:
            account = unprivileged()
            folder = Path(tempfile.mkdtemp(prefix="dragoman-initdb-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            given = folder / "password"
            given.write_text(cls.password)
            if account:
                for path in (folder, given):
                    os.chown(path, account["user"], account["group"])
            initdb = found("initdb")
            assert initdb, "initdb is missing: run `make test-services`"
            subprocess.run(
                [initdb, "--pgdata", str(folder / "data"), "--username", "dragoman", "--pwfile", str(given),
                 "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"],
                cwd=folder, check=True, stdout=subprocess.DEVNULL, **account,
            )  # fmt: skip
            cls._template = folder / "data"
        return cls._template

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            **self.settings,
        }
        postgres = found("postgres")
        assert postgres
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [postgres, "-D", str(self.folder / "data"), *options]

    def answers(self) -> bool:
        """It takes connections before it takes queries: ask it."""
        ready = found("pg_isready")
        assert ready
        asked = [ready, "--quiet", "--host", "127.0.0.1", "--port", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0

    def url(self, database: str = "postgres") -> str:
        from urllib.parse import quote

        return f"postgresql://dragoman:{quote(self.password, safe='')}@127.0.0.1:{self.port}/{database}"

    def kill(self) -> None:
        """Kill the postmaster. Its children notice and end; until then the port and the data are in use."""
        process = self.process
        super().kill()
        if process is not None:
            until = time.monotonic() + _SECONDS
            while self.answers() and time.monotonic() < until:
                time.sleep(0.02)
            (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)


class PgBouncer(Server):
    """A pooler in front of a PostgreSQL, in transaction mode: a session is another one for each statement."""

    name = "pgbouncer"

    def __init__(self, behind: Postgres) -> None:
        super().__init__()
        self._behind = behind
        users = self.folder / "users"
        users.write_text(f'"dragoman" "{behind.password}"\n')
        settings = {
            "listen_addr": "127.0.0.1", "listen_port": self.port, "unix_socket_dir": "",
            "pool_mode": "transaction", "default_pool_size": 3,
            "auth_type": "scram-sha-256", "auth_file": users,
            # Each test has a database of its own. An idle pool of each one would use up `max_connections`.
            "server_idle_timeout": 1,
        }  # fmt: skip
        lines = [f"{name} = {value}" for name, value in settings.items()]
        server = f"* = host=127.0.0.1 port={behind.port}"
        (self.folder / "config").write_text("\n".join(["[databases]", server, "[pgbouncer]", *lines, ""]))

    def command(self) -> list[str]:
        pgbouncer = found("pgbouncer")
        assert pgbouncer, "pgbouncer is missing: run `make test-services`"
        return [pgbouncer, str(self.folder / "config")]

    def through(self, url: str) -> str:
        """The address of a database, through the pooler."""
        return url.replace(f":{self._behind.port}/", f":{self.port}/")


def new_database(postgres: Postgres) -> str:
    """The address of a new, empty database."""
    import psycopg

    name = f"test_{secrets.token_hex(6)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
    return postgres.url(name)


def drop_database(postgres: Postgres, url: str) -> None:
    """Remove a database that `new_database` made, and end its connections."""
    import psycopg

    name = url.rpartition("/")[2]
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class Redis(Server):
    """A Valkey or a Redis with a password, which keeps nothing on disk."""

    name = "redis"

    def __init__(self) -> None:
        super().__init__()
        self.password = secrets.token_hex(8)

    def command(self) -> list[str]:
        server = found("valkey-server", "redis-server")
        assert server, "valkey-server is missing: run `make test-services`"
        return [server, "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no",
                "--requirepass", self.password, "--dir", str(self.folder)]  # fmt: skip

    def url(self, database: int = 0) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"


class Nginx(Server):
    """The load balancer of `deploy/team`, before HTTP servers on these loopback ports."""

    name = "nginx"

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__()
        temporary = "".join(
            f"{kind}_temp_path {self.folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        servers = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;" for port in ports)
        # What a team gets, at the addresses of this machine.
        given = (Path(__file__).parents[1] / "deploy/team/nginx.conf").read_text()
        for old, new in (
            (r"resolver .*", temporary),
            (r"server gateway:.*", servers),
            (r"listen \d+;", f"listen 127.0.0.1:{self.port};"),
            (r"\$host;", "localhost;"),
            (r"^", f"daemon off; worker_processes 1; pid {self.folder}/pid;\n"),
        ):
            given, count = re.subn(old, new, given, count=1)
            assert count == 1, old
        (self.folder / "nginx.conf").write_text(given)

    def command(self) -> list[str]:
        nginx = found("nginx")
        assert nginx, "nginx is missing: run `make test-services`"
        return [nginx, "-c", str(self.folder / "nginx.conf"), "-e", "stderr", "-p", str(self.folder)]

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


if __name__ == "__main__":
    sys.exit(install())
