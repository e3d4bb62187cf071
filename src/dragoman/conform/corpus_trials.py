"""The trials of a gateway that asks the built-in upstream: the cases of the corpus, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.messages import Tool
from . import questions, verdict
from .client import Asker
from .compare import ERROR, STOP, accepted_stops, compare, laws_of
from .laws import Broken, Law
from .laws.http import Got
from .shape import Json, Neutral
from .trial import Trial
from .upstream import CaseUpstream

DEFAULT_MODEL = "conform-{upstream}"
"""What the gateway is asked for, unless told otherwise: a name that its routes can tell apart."""


async def play(asker: Asker, upstream: CaseUpstream, case: Json, model: str, *, stream: bool) -> Trial:
    """Ask the gateway for the case, and judge what comes out."""
    trial = Trial(case["id"], case.get("title", ""), lenient=bool(case.get("debatable")))
    name = model.replace("{upstream}", case["upstream_protocol"])
    request = questions.case(name, case["id"], _tools(case)).changed(stream=stream)
    got = await asker.ask(request)
    trial.seconds = got.seconds
    trial.skipped = _not_played(case, upstream.asked.get(case["id"], set()), got)
    if not trial.skipped:
        _judge(trial, asker.protocol, case, got, stream=stream)
    return trial


def _not_played(case: Json, asked: set[str], got: Got) -> str:
    wanted = case["upstream_protocol"]
    if not asked:
        return f"the gateway did not ask the built-in upstream (status {got.status})"
    return "" if wanted in asked else f"the gateway asked in {', '.join(asked)}, the case is {wanted}"


def _judge(trial: Trial, protocol: str, case: Json, got: Got, *, stream: bool) -> None:
    found = verdict.answer_or_error(protocol, got, stream=stream)
    trial.complaints = found.complaints
    if found.said is None:
        return
    trial.complaints.seen |= _laws(case, found.said, whole=not stream)
    for broken in _compared(case, found.said, protocol, whole=not stream):
        trial.complaints.at("answer", got.body, 0)
        trial.complaints.add(broken.law, broken.text)


def _laws(case: Json, said: Neutral, *, whole: bool) -> set[Law]:
    return {STOP, ERROR} & laws_of(case) if whole and said["error"] else laws_of(case)


def _compared(case: Json, said: Mapping[str, Any], client: str, *, whole: bool) -> list[Broken]:
    """An answer in one piece that failed has nothing but its error, where one is due."""
    complaints = compare(case, said, client=client)
    if whole and said["error"] and "error" in accepted_stops(case["expect"], client):
        return [broken for broken in complaints if broken.law is ERROR]
    return complaints


def _tools(case: Json) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            name=tool["name"],
            description=tool.get("description"),
            parameters=tool.get("parameters"),
            kind=tool.get("kind", "function"),
        )
        for tool in case["request_tools"]
    )


def how_to(url: str, protocols: list[str], model: str = DEFAULT_MODEL) -> str:
    """The lines of a Dragoman config that point it at the built-in upstream."""
    lines: list[str] = []
    for protocol in protocols:
        lines += [
            f"[upstreams.conform-{protocol}]",
            f'protocol = "{protocol}"',
            f'base_url = "{url}"',
            'credential = "none"',
            "",
            "[[routes]]",
            f'match = "{model.replace("{upstream}", protocol)}"',
            f'to = "conform-{protocol}/*"',
            "",
        ]
    return "\n".join(lines)
