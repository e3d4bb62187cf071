"""Leave out settings that the model refuses. `models.toml` says which."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Settings
from ..model_facts import ModelFacts
from . import reasoning_effort
from .notices import Notices

# What each setting is by default: OpenAI's reasoning models take no other value.
_SAMPLING: dict[str, Any] = {
    "temperature": 1,
    "top_p": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": None,
    "logprobs": None,
}
_VERBOSITY = {"verbosity": "medium"}


def within_model(settings: Settings, takes: ModelFacts, model: str, notices: Notices) -> Settings:
    """`settings` without those that the model does not take, and with an effort that it takes."""
    settings = _with_known_effort(settings, takes, model, notices)
    left_out(settings, takes, model, notices)
    refused = _refused(settings, takes)
    return msgspec.structs.replace(settings, **dict.fromkeys(refused)) if refused else settings


def left_out(settings: Settings, takes: ModelFacts, model: str, notices: Notices) -> list[str]:
    """The names of the settings that the model refuses, each with a notice. It accepts its default values."""
    refused = _refused(settings, takes).items()
    dropped = [name for name, usual in refused if getattr(settings, name) not in (None, usual)]
    for name in dropped:
        notices.warn(f"{_RULES[name]}-dropped", f"settings.{name}", f"{model} does not take {name}")
    return dropped


def _refused(settings: Settings, takes: ModelFacts) -> dict[str, Any]:
    """The settings that the model refuses, with their default values."""
    refused: dict[str, Any] = {}
    if takes.sampling is False and not (takes.samples_unreasoned and not _reasons(settings, takes)):
        refused |= _SAMPLING
    if takes.verbosity is False:
        refused |= _VERBOSITY
    return refused


_RULES = {
    "temperature": "temperature",
    "top_p": "top-p",
    "presence_penalty": "penalties",
    "frequency_penalty": "penalties",
    "logit_bias": "logit-bias",
    "logprobs": "logprobs",
    "verbosity": "verbosity",
}


def _reasons(settings: Settings, takes: ModelFacts) -> bool:
    """Does the model reason for this request?"""
    effort = reasoning_effort.effort(settings.reasoning)
    if effort is None:
        return takes.reasons_unasked or "none" not in (takes.efforts or ("none",))
    return effort != "none"


def _with_known_effort(settings: Settings, takes: ModelFacts, model: str, notices: Notices) -> Settings:
    wanted = reasoning_effort.effort(settings.reasoning)
    if settings.reasoning is None or wanted is None or takes.reasons is False:
        return settings
    effort = reasoning_effort.fitting(wanted, takes, model, notices)
    if effort == wanted:
        return settings
    reasoning = msgspec.structs.replace(
        settings.reasoning, enabled=effort != "none", effort=effort, budget=None
    )
    return msgspec.structs.replace(settings, reasoning=reasoning)
