"""`dragoman check`: is everything the config names there, and what to do about what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import aiohttp
import msgspec

from .config.types import Config, UpstreamConfig
from .errors import DragomanError
from .gateway.state import State

_MODELS = {"gemini": "/v1beta/models"}


class Finding(msgspec.Struct, frozen=True):
    """One line of the result."""

    name: str
    good: bool
    says: str
    advice: str = ""


async def check(config: Config, env: Mapping[str, str], patience: float = 10.0) -> list[Finding]:
    """Resolve every credential and knock at every upstream, all at once, each within `patience` seconds."""
    state = State(config, env=env)
    try:
        async with aiohttp.ClientSession(trust_env=True) as session:
            probes = [_probe(state, session, upstream, patience) for upstream in config.upstreams.values()]
            return list(await asyncio.gather(*probes))
    finally:
        await state.close()


async def _probe(
    state: State, session: aiohttp.ClientSession, upstream: UpstreamConfig, patience: float
) -> Finding:
    url = upstream.url(_MODELS.get(upstream.protocol, "/v1/models"))
    if upstream.credential.kind == "client":
        return Finding(upstream.name, True, "uses the caller's own key; not probed")
    try:
        headers = await state.headers(upstream, url)
    except DragomanError as error:
        return Finding(upstream.name, False, error.message, "put the credential there, or name another")
    try:
        async with session.get(
            url, headers=headers, allow_redirects=False, timeout=aiohttp.ClientTimeout(total=patience)
        ) as response:
            return _judged(upstream, url, response.status)
    except TimeoutError:
        return Finding(upstream.name, False, f"no answer from {url} in {patience:.0f} s", "is it reachable?")
    except (aiohttp.ClientError, OSError) as error:
        advice = "is it running, and is base_url right?"
        return Finding(upstream.name, False, f"{url} cannot be reached ({type(error).__name__})", advice)


def _judged(upstream: UpstreamConfig, url: str, status: int) -> Finding:
    if status in (401, 403):
        advice = f"renew what {upstream.credential.place} holds"
        return Finding(upstream.name, False, f"the credential is refused ({status})", advice)
    if status >= 500:
        return Finding(upstream.name, False, f"in trouble ({status} at {url})", "try again later")
    # Some servers have no list of models: that they answer at all is what matters here.
    return Finding(upstream.name, True, f"answers ({status})")
