"""The command: starts the demo gateway, or only prints the broken answers."""

from __future__ import annotations

import click


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=4545, show_default=True, help="The port to listen on."
)
@click.option("--show", is_flag=True, help="Print a few broken answers and what the client gets, then exit.")
def demo(host: str, port: int, show: bool) -> None:
    """Run the gateway with a scripted model behind it. Needs no key and no network."""
    if show:
        from . import scenes

        for line in scenes.lines():
            click.echo(line)
        return
    from . import gateway

    gateway.run(host, port, click.echo)
