"""`make test-agents`: real agents and SDKs through a real gateway, against every upstream protocol.

Each must run its tool, so that a file appears, and print the model's final text. Prints a table, and exits
with 1 if anything failed. Everything runs on loopback, in a network namespace without other interfaces if the
system allows it.
"""

import argparse
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import installs
from rows import ROWS, Row
from stage import PROTOCOLS, Outcome, config, gateway, play, play_recorded, upstream

ALONE = "DRAGOMAN_AGENTS_ALONE"
# Behaviours that Dragoman mends or carries over: the agent must reach the same result with each.
MISCHIEF = (
    "demo-parallel",
    "demo-thinking",
    "demo-sealed",
    "demo-fragments",
    "demo-misnamed",
    "demo-miscased",
    "demo-stringly",
    "demo-wrapped",
    "demo-syntax",
    "demo-fenced",
    "demo-ghost",
    "demo-duplicate",
    "demo-interleaved",
    "demo-leak",
    "demo-think",
    "demo-flaky",
)


def main() -> None:
    """Install, leave the network, run, print."""
    wanted = _wanted()
    rows = [
        row
        for row in ROWS
        if not wanted.rows or row.name.casefold().startswith(tuple(map(str.casefold, wanted.rows)))
    ]
    if ALONE not in os.environ:
        installs.install({need for row in rows for need in row.needs})
        _alone()
    _loopback_up()
    columns = [(protocol, "demo") for protocol in wanted.upstreams]
    if wanted.mischief:
        columns = [(protocol, name) for protocol in wanted.upstreams for name in wanted.mischief]
    table = _played(rows, columns, wanted.patience)
    print(_as_markdown(table, columns))
    failed = [o for line in table.values() for o in line if o.problem]
    print(f"\n{sum(map(len, table.values())) - len(failed)} went well, {len(failed)} did not.")
    raise SystemExit(1 if failed else 0)


def _wanted() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make test-agents", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("rows", nargs="*", help="how the names of agents and SDKs begin; all without")
    parser.add_argument("--upstreams", nargs="+", choices=PROTOCOLS, default=PROTOCOLS)
    parser.add_argument(
        "--mischief",
        nargs="*",
        help="instead of the good model these bad ones; without names all that are mended",
    )
    parser.add_argument("--patience", type=float, default=240, help="seconds a turn may take")
    wanted = parser.parse_args()
    if wanted.mischief == []:
        wanted.mischief = list(MISCHIEF)
    return wanted


def _played(rows: list[Row], columns: list[tuple[str, str]], patience: float) -> dict[str, list[Outcome]]:
    table: dict[str, list[Outcome]] = {}
    with upstream() as model, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(config(model))
        with gateway(file) as url:
            for row in rows:
                table[row.name] = []
                for protocol, behaviour in columns:
                    if row.replays:
                        outcome = play_recorded(row, protocol, behaviour, file=file, patience=patience)
                    else:
                        outcome = play(row, protocol, behaviour, file=file, url=url, patience=patience)
                    table[row.name].append(outcome)
                    said = outcome.problem or "ok"
                    print(f"{row.name} / {protocol} / {behaviour}: {said} ({outcome.seconds} s)", flush=True)
                    if outcome.problem:
                        print("    " + "\n    ".join(outcome.output.splitlines()[-25:]), flush=True)
    return table


def _as_markdown(table: dict[str, list[Outcome]], columns: list[tuple[str, str]]) -> str:
    heads = [
        protocol if behaviour == "demo" else f"{protocol} {behaviour}" for protocol, behaviour in columns
    ]
    lines = ["", "| client | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(columns)]
    for name, outcomes in table.items():
        cells = [f"**{o.problem}**" if o.problem else f"ok {o.seconds} s" for o in outcomes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _alone() -> None:
    """Restart in a namespace with only loopback, if the system allows it."""
    unshare = shutil.which("unshare")
    if unshare and not subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        os.environ[ALONE] = "1"
        os.execv(unshare, [unshare, "-rn", sys.executable, *sys.argv])
    print("this system has no network namespaces for users: agents may try to reach the network", flush=True)


def _loopback_up() -> None:
    if ALONE not in os.environ:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        get, set_flags, up = 0x8913, 0x8914, 0x1
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, get, asked))[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", flags | up))


main()
