"""Thousands of mixed exchanges with random faults and clients that leave: nothing leaks.

`DRAGOMAN_SOAK_SECONDS` makes it longer; `DRAGOMAN_SOAK_SEED` repeats one.
"""

import asyncio
import gc
import os
import random
import time
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from gateway_harness import Gateway, ask, config, running
from support.scripted_upstream import refused_url
from support.wires import PROTOCOLS

from dragoman.conform.scripted import BEHAVIOURS, serve
from dragoman.conform.shape import UnreadableError
from dragoman.gateway.exchange.exchange import Exchange, Job

SECONDS = float(os.environ.get("DRAGOMAN_SOAK_SECONDS", "6"))
SEED = int(os.environ.get("DRAGOMAN_SOAK_SEED", "4"))
CROWD = 50
# Slow behaviours get few turns, so that there is time for thousands of others.
SLOW = ["demo-slow", "demo-hang", "demo-stall", "demo-endless", "demo-ratelimit", "demo-flaky"]
QUICK = [name for name in BEHAVIOURS if name not in SLOW]
NEVER_ENDS = ("demo-endless",)
MAX_GROWTH = 24 * 2**20


def memory() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def toml(url: str, folder: Path) -> str:
    routes = f"""
        [upstreams.gone]
        protocol = "openai-chat"
        base_url = "{refused_url()}"
        [[routes]]
        match = "twice-*"
        to = ["gone/x", "a/demo-overloaded", "g/demo-503", "r/demo"]
        [tools]
        invalid = "reask"
    """
    # The ring would grow during the whole test up to its own limit. A small one is full at once.
    kept = f'store = "{folder}/store.sqlite"\nretention = "1h"\nring = "1MB"'
    server = f'retries = 1\nkeepalive = "20ms"\n{kept}'
    return config(url, server=server, each='idle_timeout = "250ms"', more=routes)


class Soak:
    """Concurrent clients, and the outcomes they saw."""

    def __init__(self, gateway: Gateway, chance: random.Random) -> None:
        self.gateway = gateway
        self.chance = chance
        self.saw = Counter[str]()
        self.wrong: list[str] = []

    async def during(self, seconds: float) -> None:
        over = time.monotonic() + seconds
        await asyncio.gather(*(self._one_after_another(over) for _ in range(CROWD)))
        assert await self.gateway.idle(5.0)

    async def _one_after_another(self, over: float) -> None:
        while time.monotonic() < over:
            await self._exchange()

    async def _exchange(self) -> None:
        chance = self.chance
        client = chance.choice(PROTOCOLS)
        name = chance.choice(SLOW if chance.random() < 0.02 else QUICK)
        model = f"twice-{name}" if chance.random() < 0.05 else f"{chance.choice('acrg')}/{name}"
        leaves = chance.random() < 0.25 or name in NEVER_ENDS
        patience = chance.random() * 0.06 if leaves else 20.0
        try:
            async with asyncio.timeout(patience):
                got = await ask(self.gateway, client, model, stream=chance.random() < 0.7)
            said = got.said
        except TimeoutError:
            self.saw["left" if leaves else "stuck"] += 1
            return
        except (AssertionError, UnreadableError, aiohttp.ClientError) as error:
            self.wrong.append(f"{client} {model}: {type(error).__name__} {error}"[:600])
            return
        self.saw["refused" if got.status >= 400 else "broke off" if said["error"] else "answered"] += 1
        if said["stop"] is None:
            self.wrong.append(f"{client} {model}: no end")


def test_no_memory_descriptor_or_exchange_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = 0
    run = Exchange.run

    async def counted(self: Exchange, job: Job) -> object:
        nonlocal started
        started += 1
        return await run(self, job)

    monkeypatch.setattr(Exchange, "run", counted)

    async def scene() -> None:
        url, stop = await serve(pace=0.01)
        async with running(toml(url, tmp_path)) as gateway:
            soak = Soak(gateway, random.Random(SEED))
            await soak.during(min(3.0, SECONDS / 3))  # after the warm-up of caches and buffers
            await _settled(gateway)
            memory_before, tasks, files = memory(), len(asyncio.all_tasks()), descriptors()
            await soak.during(SECONDS)
            await _settled(gateway)
            print_report(soak, started, memory() - memory_before)
            assert soak.wrong == []
            assert soak.saw["stuck"] == 0
            assert min(soak.saw[kind] for kind in ("left", "refused", "broke off", "answered")) > 0
            assert gateway.state.lifecycle.running == 0
            assert gateway.total("open") == 0
            requests = gateway.state.observed.metrics.requests.collect()
            counted = sum(s.value for m in requests for s in m.samples if s.name.endswith("_total"))
            assert counted == started
            assert gateway.total("requests", outcome="server") <= gateway.total("failures", kind="server")
            assert len(asyncio.all_tasks()) <= tasks
            assert descriptors() <= files + 2
            assert memory() - memory_before < MAX_GROWTH
        await stop()

    asyncio.run(scene())


def print_report(soak: Soak, started: int, growth: int) -> None:
    """Print the counts (visible with `pytest -s`, or on failure)."""
    seen = ", ".join(f"{count} {kind}" for kind, count in sorted(soak.saw.items()))
    print(f"\n{started} exchanges ({seen}), memory grew by {growth / 2**20:.1f} MiB")  # noqa: T201


async def _settled(gateway: Gateway) -> None:
    """Wait until only idle connections are open, and close those."""
    connector = gateway.session.connector
    assert connector is not None
    await asyncio.sleep(0.6)  # until delayed closes are done
    for pooled in list(connector._conns.values()):
        for protocol, _ in pooled:
            protocol.close()
    connector._conns.clear()
    await gateway.state.upstreams.pool.close()  # the next call opens new connections
    await asyncio.sleep(0.2)
    gc.collect()
