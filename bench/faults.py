"""`python -m bench.faults`: how Dragoman and other gateways handle the recorded failures of Chat upstreams.

Each gateway is started as for the bench and gets the requests of `dragoman conform`. The content of an answer
is right if all text is there, each call is complete, correct and sent once, and a cut or an error is reported
as one. The answer is also legal if it breaks no law of the client's protocol. Writes
bench/results/faults.json.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from dragoman.conform import compare, corpus, corpus_trials
from dragoman.conform.client import open_endpoint
from dragoman.conform.shape import Json
from dragoman.conform.trial import BROKEN, Trial
from dragoman.conform.upstream import CaseUpstream

from .answers import ANTHROPIC, CHAT
from .peers import PEERS
from .peers.install import install, version
from .processes import ROOT, free_port
from .shapes import FAULTS
from .subjects import DRAGOMAN, FLOOR_A, Place, Subject

RESULTS = ROOT / "bench" / "results" / "faults.json"
PAIRS = ((CHAT, CHAT), (ANTHROPIC, CHAT))
_AT_ONCE = 2
_PATIENCE = 20.0


class Tally(msgspec.Struct):
    """The results of one gateway for one pair of protocols."""

    gateway: str
    client: str
    upstream: str
    right: int
    """Answers whose content is right."""
    legal: int
    """Those of them that break no law of the protocol either."""
    of: int
    laws: dict[str, int]
    """How many answers broke which law."""
    version: str = ""


async def judged(subject: Subject, pair: tuple[str, str], cases: list[Json]) -> Tally:
    """Start the gateway and run every case."""
    port = free_port()
    upstream = CaseUpstream(cases)
    await upstream.start(port)
    with tempfile.TemporaryDirectory() as folder:
        running = subject.start(Path(folder), port)
        try:
            await asyncio.to_thread(running.wait_until_listening)
            trials = await _trials(subject.pairs[pair], running.port, port, pair[0], upstream, cases)
        finally:
            running.stop()
            await upstream.stop()
    seen = [trial for trial in trials if not trial.skipped]
    right = [trial for trial in seen if _right(trial)]
    return Tally(
        *(subject.name, *pair),
        right=len(right),
        legal=sum(trial.state != BROKEN for trial in right),
        of=len(seen),
        laws=Counter(name for trial in seen for name in _broken(trial)),
        version=version(subject.name) if subject in PEERS else "",
    )


def _right(trial: Trial) -> bool:
    """Is the answer readable and as expected?"""
    content = {law.name for law in compare.LAWS}
    return bool(content & {law.name for law in trial.complaints.seen}) and not content & _broken(trial)


def _broken(trial: Trial) -> set[str]:
    return {broken.law.name for broken in trial.complaints.found if trial.firmly(broken)}


async def _trials(
    place: Place, port: int, upstream_port: int, client: str, upstream: CaseUpstream, cases: list[Json]
) -> list[Trial]:
    headers = {name: text.replace("{upstream}", str(upstream_port)) for name, text in place.headers.items()}
    url = f"http://127.0.0.1:{port}{place.path.removesuffix('/chat/completions')}"
    turn = asyncio.Semaphore(_AT_ONCE)
    async with open_endpoint(url, client, "bench", _PATIENCE, headers) as endpoint:

        async def play(case: Json) -> Trial:
            async with turn:
                model = place.model.format(FAULTS)
                return await corpus_trials.play(endpoint, upstream, case, model, stream=True)

        return await asyncio.gather(*map(play, cases))


def main() -> None:
    """Run every gateway, one after the other."""
    cases = [case for case in corpus.cases() if case["upstream_protocol"] == CHAT]
    subjects = [FLOOR_A, DRAGOMAN, *(peer for peer in PEERS if not _missing(peer))]
    work = [(subject, pair) for pair in PAIRS for subject in subjects if pair in subject.pairs]
    tallies: list[Tally] = []
    for subject, pair in work:
        tallies.append(asyncio.run(judged(subject, pair, cases)))
        print(tallies[-1], flush=True)
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(tallies), indent=2) + b"\n")


def _missing(peer: Subject) -> str:
    why = install(peer.name, lambda text: print(text, file=sys.stderr))
    if why:
        print(f"{peer.name}: {why}", file=sys.stderr)
    return why


if __name__ == "__main__":
    main()
