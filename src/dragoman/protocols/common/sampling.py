"""Leave out settings that the model of another protocol's request refuses. `models.toml` says which."""

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
    """`settings` without those that the model does not take."""
    refused: dict[str, Any] = {}
    if takes.sampling is False and not (takes.samples_unreasoned and not _reasons(settings)):
        refused |= _SAMPLING
    if takes.verbosity is False:
        refused |= _VERBOSITY
    dropped = [name for name, usual in refused.items() if getattr(settings, name) not in (None, usual)]
    for name in dropped:
        notices.warn(f"{_RULES[name]}-dropped", f"settings.{name}", f"{model} does not take {name}")
    return msgspec.structs.replace(settings, **dict.fromkeys(dropped)) if dropped else settings


_RULES = {
    "temperature": "temperature",
    "top_p": "top-p",
    "presence_penalty": "penalties",
    "frequency_penalty": "penalties",
    "logit_bias": "logit-bias",
    "logprobs": "logprobs",
    "verbosity": "verbosity",
}


def _reasons(settings: Settings) -> bool:
    """Does the request ask for reasoning? Models that may sample do not reason by default."""
    return reasoning_effort.effort(settings.reasoning) not in (None, "none")
