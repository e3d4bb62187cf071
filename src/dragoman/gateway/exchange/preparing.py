"""Prepare a client's request for one target: apply the model's limits, and emulate images and web search."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from ...config.providers import takes_named_choice
from ...config.types import UpstreamConfig
from ...model.events import Usage
from ...model.messages import Notice, Request, ToolChoice
from ...protocols.registry import upstream_protocol
from ...routing.model_limits import clamp
from ...routing.router import ChosenTarget
from ...store import searches
from ...tools import loop_policy
from ...tools.search import SearchTool, hosted_search
from ..state import State
from . import images, searching, side_question
from .incoming_request import IncomingRequest


class Prepared(msgspec.Struct, frozen=True):
    """The request for the target, and the notices about it."""

    request: Request
    notices: tuple[Notice, ...]
    search: SearchTool | None
    """The function for which Dragoman has to run the searches."""


async def prepare(
    state: State, request: Request, choice: ChosenTarget, incoming: IncomingRequest
) -> Prepared:
    """Prepare `request`, which was made of the incoming one, for the target of `choice`."""
    request, notices = _within_limits(state, request, choice)
    if images.cannot_see(choice.target):
        request, more = await _without_images(state, request, choice, incoming)
        notices = (*notices, *more)
    if not request.tools:
        return Prepared(request, notices, None)
    request, more = _with_choice(request, choice)
    notices = (*notices, *more)
    if state.config.search.can_search and hosted_search(request) is not None:
        request, more = await searches.restore(state.store, request, incoming.scope)
        notices = (*notices, *more)
    upstream = choice.upstream
    request, search, more = searching.prepare_search(
        request,
        upstream_protocol(upstream.protocol),
        choice.target,
        state.config.search,
        upstream_may=upstream.web_search,
    )
    return Prepared(request, (*notices, *more), search)


def _within_limits(
    state: State, request: Request, choice: ChosenTarget
) -> tuple[Request, tuple[Notice, ...]]:
    """Apply the model's output limit, and the policy for agents in a loop."""
    notices: tuple[Notice, ...] = ()
    if request.settings.max_tokens is not None:
        request, notices = clamp(request, state.upstreams.limits.of(choice.upstream, choice.model))
    found = loop_policy.find_loop(request)
    if found is not None and found.count > 2:
        loops = state.config.tools.loops
        names = ", ".join(name for name, _, _ in found.turns)
        message = f"{names} gave the same result {found.count} times in a row"
        notices = (*notices, Notice("going-in-circles", "messages", message))
        request = loop_policy.apply_policy(
            request, found, note_after=loops.note_after, stop_after=loops.stop_after
        )
    return request, notices


def _with_choice(request: Request, choice: ChosenTarget) -> tuple[Request, tuple[Notice, ...]]:
    """For a server that ignores the name of a chosen tool: this tool only, and a call is required."""
    wanted = request.settings.tool_choice
    if wanted is None or wanted.mode != "named" or takes_named_choice(choice.upstream.provider):
        return request, ()
    named = [t for t in request.tools if (t.name, t.namespace) == (wanted.name, wanted.namespace)]
    if not named or named[0].kind == "hosted":
        return request, ()
    settings = msgspec.structs.replace(request.settings, tool_choice=ToolChoice("required"))
    message = f"the upstream ignores the name of a chosen tool: it gets only {wanted.name}, as required"
    notice = Notice("named-choice-emulated", "settings.tool_choice", message, warning=False)
    return request.changed(tools=(named[0],), settings=settings), (notice,)


async def _without_images(
    state: State, request: Request, choice: ChosenTarget, incoming: IncomingRequest
) -> tuple[Request, tuple[Notice, ...]]:
    config = state.config.images
    target = config.describe_with
    describe = partial(_describe, state, config.timeout, incoming.exchange.count_side_question)
    strict = choice.target.strict
    return await images.replace_images(
        request, target, state.descriptions, describe, scope=incoming.scope, strict=strict
    )


async def _describe(
    state: State, seconds: float, count: Callable[[UpstreamConfig, str, Usage], None], request: Request
) -> str:
    target = state.config.images.describe_with
    assert target is not None
    answer = await side_question.ask(state, target, request, seconds=seconds)
    # Agents judge by the usage of an answer how full their context is. These tokens do not fill it, so they
    # are counted beside it.
    if answer.usage.known:
        count(state.config.upstreams[target.upstream], target.model, answer.usage)
    return answer.text()
