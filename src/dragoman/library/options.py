"""Check keyword arguments of `ToolLoop` by name, before the first request.

`ToolLoop` passes every keyword argument that is not its own to the SDK. So `max_turn=3` would reach the SDK
only with the first request, and some SDKs would send it to the provider.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import Any


def check_options(given: Iterable[str], own: Collection[str], create: Callable[..., Any] | None) -> None:
    """Raise TypeError for a keyword argument that neither `ToolLoop` (`own`) nor the SDK's `create` has."""
    known = None if create is None else _parameters(create)
    for name in given:
        if known is not None and name in known:
            continue
        # A method with `**kwargs` may take any name. Then only a near miss of an own option is an error.
        candidates = [*own, *(known or ())]
        near = get_close_matches(name, candidates, 1, 0.8)
        if known is not None or near:
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"ToolLoop and the SDK have no option {name!r}{hint}")


def _parameters(create: Callable[..., Any]) -> set[str] | None:
    """The names that `create` takes; None if it takes any name, or does not tell."""
    with suppress(TypeError, ValueError):
        parameters = inspect.signature(create).parameters.values()
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            return {parameter.name for parameter in parameters}
    return None
