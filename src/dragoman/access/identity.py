"""The identity behind a request: its key, team, role, models and limits."""

from __future__ import annotations

import msgspec

from ..config.limits import NO_LIMITS, UsageLimits
from ..config.types import Role
from ..config.values import glob_matches
from ..model.errors import DragomanError, Fault

_MAX_LISTED = 8


class ModelNotAllowed(DragomanError):
    """The key may not use the model that its request asks for."""

    status = 403
    fault: Fault = "client"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a key says about its owner. The default is a key of `server.keys`, or a gateway without keys."""

    name: str = ""
    team: str = ""
    role: Role = "admin"
    models: tuple[str, ...] = ()
    """Globs on the client's model name. Empty: every model."""
    limits: UsageLimits = NO_LIMITS
    team_limits: UsageLimits = NO_LIMITS

    @property
    def sees_all(self) -> bool:
        return self.role == "admin"

    def sees(self, owner: str) -> bool:
        """May this key see an exchange of the key `owner`?"""
        return self.role == "admin" or self.name == owner

    def may_use(self, model: str) -> bool:
        # Gemini clients may send this prefix. The router ignores it too.
        name = model.removeprefix("models/")
        return not self.models or any(glob_matches(glob, name) for glob in self.models)

    def check_model(self, model: str) -> None:
        """Raise `ModelNotAllowed` if the key may not use `model`."""
        if not self.may_use(model):
            listed = ", ".join(self.models[:_MAX_LISTED]) + (", …" if len(self.models) > _MAX_LISTED else "")
            raise ModelNotAllowed(
                f'the key "{self.name}" may not use the model "{model[:100]}"; it may use {listed}'
            )

    def scope(self, fingerprint: str) -> str:
        """The scope of stored state: a key reads only the state that was stored under the same scope.

        The name of a key survives its rotation. `fingerprint` is that of the secret that the client sent.
        """
        return f"{self.name} {fingerprint}".rstrip() if self.name else fingerprint


ANYBODY = Identity()
"""Everybody, at a gateway without keys."""
