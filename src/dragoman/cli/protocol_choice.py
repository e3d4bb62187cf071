"""The option type for a protocol's name. It imports the protocols only when it needs their names."""

from __future__ import annotations

from typing import Any, Literal

import click
from click.shell_completion import CompletionItem


class ProtocolChoice(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]  # not generic before 8.4
    """A protocol of clients, of upstreams, or of both: no upstream speaks `cursor`."""

    name = "protocol"

    def __init__(self, spoken_by: Literal["clients", "upstreams", "both"]) -> None:
        self._spoken_by = spoken_by

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return self._choice().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._choice().get_metavar(param, ctx)

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str | None:
        return self._choice().get_missing_message(param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return self._choice().shell_complete(ctx, param, incomplete)

    @property
    def choices(self) -> list[str]:
        from ..protocols.registry import CLIENTS, PROTOCOLS, upstreams

        return [*{"clients": CLIENTS, "upstreams": upstreams(), "both": PROTOCOLS}[self._spoken_by]]

    def _choice(self) -> click.Choice[str]:
        return click.Choice(self.choices)
