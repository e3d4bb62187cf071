"""The trials for a gateway: each plays one case of the corpus through the built-in upstream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.messages import Tool
from . import sample_requests, verdict
from .client import EndpointClient
from .compare import ERROR, STOP, accepted_stops, compare, laws_of
from .laws import Breach, Law
from .laws.http import HttpAnswer
from .shape import Json, Neutral
from .trial import Trial
from .upstream import CaseUpstream

DEFAULT_MODEL = "conform-{upstream}"
"""The default model of the requests. The gateway's routes choose the upstream by it."""


async def play(
    endpoint: EndpointClient, upstream: CaseUpstream, case: Json, model: str, *, stream: bool
) -> Trial:
    """Request the case through the gateway, and judge the answer."""
    trial = Trial(case["id"], case.get("title", ""), lenient=bool(case.get("debatable")))
    name = model.replace("{upstream}", case["upstream_protocol"])
    request = sample_requests.case(name, case["id"], _tools(case)).changed(stream=stream)
    got = await endpoint.ask(request)
    trial.seconds = got.seconds
    trial.skipped = _not_played(case, upstream.asked.get(case["id"], set()), got)
    if not trial.skipped:
        _judge(trial, endpoint.protocol, case, got, stream=stream)
    return trial


def _not_played(case: Json, asked: set[str], got: HttpAnswer) -> str:
    wanted = case["upstream_protocol"]
    if not asked:
        return f"the gateway sent no request to the built-in upstream (status {got.status})"
    if wanted in asked:
        return ""
    return f"the gateway sent its request in {', '.join(asked)}, but the case needs {wanted}"


def _judge(trial: Trial, protocol: str, case: Json, got: HttpAnswer, *, stream: bool) -> None:
    found = verdict.answer_or_error(protocol, got, stream=stream)
    trial.complaints = found.complaints
    if found.reduced is None:
        return
    trial.complaints.seen |= _laws(case, found.reduced, whole=not stream)
    for broken in _compared(case, found.reduced, protocol, whole=not stream):
        trial.complaints.at("answer", got.body, 0)
        trial.complaints.add(broken.law, broken.text)


def _laws(case: Json, reduced: Neutral, *, whole: bool) -> set[Law]:
    return {STOP, ERROR} & laws_of(case) if whole and reduced["error"] else laws_of(case)


def _compared(case: Json, reduced: Mapping[str, Any], client: str, *, whole: bool) -> list[Breach]:
    """The breaches. A failed answer in one body only has its error, so only the error is compared."""
    complaints = compare(case, reduced, client=client)
    if whole and reduced["error"] and "error" in accepted_stops(case["expect"], client):
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
    """A Dragoman config that uses the built-in upstream."""
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
