"""One timer sends the keepalives of all answers."""

import asyncio
import time

from dragoman.gateway.exchange.keepalive import KeepaliveTimer


class Answer:
    """Is due every `interval` seconds, and notes each keepalive in `order`."""

    def __init__(self, name: str, interval: float, order: list[str], wanted: int = 1) -> None:
        self.name = name
        self.interval = interval
        self.order = order
        self.due = time.monotonic() + interval
        self.woken = asyncio.Event()
        self._wanted = wanted

    async def send_keepalive(self) -> None:
        self.order.append(self.name)
        self.due = time.monotonic() + self.interval
        self._wanted -= 1
        if not self._wanted:
            self.woken.set()


async def all_of(*answers: Answer) -> None:
    async with asyncio.timeout(30):
        for answer in answers:
            await answer.woken.wait()


def test_each_answer_gets_its_keepalive_when_it_is_due() -> None:
    async def scene() -> None:
        order: list[str] = []
        timer = KeepaliveTimer()
        late, early = Answer("late", 0.5, order), Answer("early", 0.05, order, wanted=2)
        timer.add(late)
        timer.add(early)
        await all_of(late, early)
        assert order[:2] == ["early", "early"]
        assert order.count("late") == 1

    asyncio.run(scene())


def test_no_keepalive_after_a_write_or_a_discard() -> None:
    async def scene() -> None:
        order: list[str] = []
        timer = KeepaliveTimer()
        speaks, leaves, silent = (Answer(name, 0.1, order) for name in ("speaks", "leaves", "silent"))
        for one in (speaks, leaves, silent):
            timer.add(one)
        speaks.due += 3600
        timer.discard(leaves)
        await all_of(silent)
        assert order == ["silent"]

    asyncio.run(scene())


def test_a_failing_keepalive_does_not_stop_the_others() -> None:
    class Failing(Answer):
        async def send_keepalive(self) -> None:
            await super().send_keepalive()
            raise RuntimeError("a bug")

    async def scene() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        order: list[str] = []
        timer = KeepaliveTimer()
        failing, other = Failing("failing", 0.05, order), Answer("other", 0.1, order, wanted=2)
        timer.add(failing)
        timer.add(other)
        await all_of(other)
        assert "failing" in order
        assert reported

    asyncio.run(scene())
