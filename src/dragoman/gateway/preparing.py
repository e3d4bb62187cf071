"""A client's request, made ready for one target: within the model's limits, with what the model lacks."""

from __future__ import annotations

from functools import partial

import msgspec

from ..model.messages import Notice, Request
from ..protocols.registry import protocol
from ..routing.model_limits import clamp
from ..routing.router import Choice
from ..tools import loop_policy
from ..tools.search import SearchTool
from . import images, searching, side_question
from .state import State


class Prepared(msgspec.Struct, frozen=True):
    """The request for the target, and what there is to say about it."""

    request: Request
    notices: tuple[Notice, ...]
    search: SearchTool | None
    """The function for which Dragoman has to run the searches."""


async def prepare(state: State, request: Request, choice: Choice, scope: str) -> Prepared:
    """The request as this target can take it."""
    request, notices = _within_limits(state, request, choice)
    if images.cannot_see(choice):
        request, said = await _in_words(state, request, choice)
        notices = (*notices, *said)
    if not request.tools:
        return Prepared(request, notices, None)
    request = state.searches.restore(request, scope)
    upstream = choice.upstream
    request, search, said = searching.prepared(
        request,
        protocol(upstream.protocol),
        choice.target,
        state.config.search,
        upstream_may=upstream.web_search,
    )
    return Prepared(request, (*notices, *said), search)


def _within_limits(state: State, request: Request, choice: Choice) -> tuple[Request, tuple[Notice, ...]]:
    """Not more tokens than the model gives, and not in circles."""
    said: tuple[Notice, ...] = ()
    if request.settings.max_tokens is not None:
        request, said = clamp(request, state.limits.of(choice.upstream, choice.model))
    found = loop_policy.noticed(request)
    if found is not None and found.count > 2:
        loops = state.config.tools.loops
        names = ", ".join(name for name, _, _ in found.turns)
        message = f"{names} gave the same result {found.count} times in a row"
        said = (*said, Notice("going-in-circles", "messages", message))
        request = loop_policy.guarded(
            request, found, note_after=loops.note_after, stop_after=loops.stop_after
        )
    return request, said


async def _in_words(state: State, request: Request, choice: Choice) -> tuple[Request, tuple[Notice, ...]]:
    config = state.config.images
    target = config.describe_with
    describe = partial(_describe, state, config.timeout)
    return await images.in_words(request, target, state.descriptions, describe, strict=choice.target.strict)


async def _describe(state: State, seconds: float, request: Request) -> str:
    target = state.config.images.describe_with
    assert target is not None
    return await side_question.ask(state, target, request, seconds=seconds)
