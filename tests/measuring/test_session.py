"""The whole bench at work, small: upstream, load generator, floors and Dragoman as processes."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bench.answers import ANTHROPIC, CHAT
from bench.requests import Talk
from bench.session import Bench, WrongAnswer
from bench.shapes import BRIEF, SHORT, Shape
from bench.subjects import OURS, Subject

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPU of other processes is read from /proc")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("bench")
    with contextlib.closing(Bench(folder)) as bench:
        yield bench


@pytest.mark.parametrize("subject", OURS, ids=lambda subject: subject.name)
def test_everybody_answers_rightly_and_is_charged_for_it(bench: Bench, subject: Subject) -> None:
    running = bench.running(subject)
    for pair in subject.pairs:
        job = bench.job(subject, running, pair, SHORT, requests=4, at_once=2)
        assert bench.cpu(running, job) > 0
    assert running.memory() > 10


@pytest.mark.parametrize("subject", [s for s in OURS if (ANTHROPIC, CHAT) in s.pairs], ids=lambda s: s.name)
def test_a_history_that_is_not_whole_is_noticed(bench: Bench, subject: Subject) -> None:
    talk = Talk(1, turns=2)
    shape = msgspec.structs.replace(BRIEF, marks=talk.marks)
    job = bench.job(subject, bench.running(subject), (ANTHROPIC, CHAT), shape, talk=talk)
    bench.answered(job)
    with pytest.raises(WrongAnswer, match="marks"):
        bench.answered(msgspec.structs.replace(job, talk=Talk(1, turns=1)))


def test_paced_streams_arrive_whole(bench: Bench) -> None:
    dragoman = OURS[-1]
    shape = Shape(texts=8, fragments=0, every_ms=5)
    job = bench.job(dragoman, bench.running(dragoman), (CHAT, CHAT), shape, requests=3, at_once=3)
    assert bench.answered(job).requests == 3
