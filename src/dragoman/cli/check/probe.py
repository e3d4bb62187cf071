"""`dragoman check`: is everything the config names there, and what to do about what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from ...config.types import Config, UpstreamConfig
from ...gateway.model_list import MAX_LIST_SIZE, list_url, parse_list
from ...gateway.state import State
from ...model.errors import DragomanError
from ...model.events import FailureKind
from ...protocols.common import failures
from ...routing.router import named_models
from ...transport.client import BadTls, HttpError, ProxyRefused, UnknownCoding

_SHOWN = 3


class Finding(msgspec.Struct, frozen=True):
    """One line of the result."""

    name: str
    good: bool
    says: str
    advice: str = ""


async def check(config: Config, env: Mapping[str, str], patience: float = 10.0) -> list[Finding]:
    """Resolve every credential and knock at every upstream, all at once, each within `patience` seconds."""
    in_memory = msgspec.structs.replace(config.server, store=None)  # looking changes nothing
    state = State(msgspec.structs.replace(config, server=in_memory, warnings=()), env=env)
    try:
        probes = [_probe(state, upstream, patience) for upstream in config.upstreams.values()]
        return list(await asyncio.gather(*probes))
    finally:
        await state.close()


async def _probe(state: State, upstream: UpstreamConfig, patience: float) -> Finding:
    url = list_url(upstream)
    shown = url.partition("?")[0]
    if upstream.credential.kind == "client":
        return Finding(upstream.name, True, "uses the caller's own key; not probed")
    try:
        async with asyncio.timeout(patience):
            headers = await state.keyring.headers(upstream, url)
            status, body = await state.pool.get(url, headers, upstream, max_size=MAX_LIST_SIZE)
            return _judged(state.config, upstream, shown, status, body)
    except DragomanError as error:
        return Finding(upstream.name, False, error.message, "put the credential there, or name another")
    except TimeoutError:
        return Finding(upstream.name, False, f"no answer from {shown} in {patience:g} s", "is it reachable?")
    except HttpError as error:
        told = isinstance(error, (BadTls, ProxyRefused, UnknownCoding))
        advice = "" if told else "is it running, and is base_url right?"
        return Finding(upstream.name, False, f"{shown} {error}", advice)


def _judged(config: Config, upstream: UpstreamConfig, url: str, status: int, body: bytes) -> Finding:
    name = upstream.name
    if 300 <= status < 400:
        advice = "put the address it leads to into base_url; credentials do not follow redirects"
        return Finding(name, False, f"{url} redirects elsewhere ({status})", advice)
    if status in (401, 403) or (status == 400 and _is_about_the_key(body)):
        advice = f"renew what {upstream.credential.description} holds"
        return Finding(name, False, f"the credential is refused ({status})", advice)
    if status >= 500:
        return Finding(name, False, f"in trouble ({status} at {url})", "try again later")
    missing = _missing(config, name, body) if status < 300 else []
    if missing:
        advice = f"it does not list {', '.join(missing[:_SHOWN])}: is that what the models are called?"
        return Finding(name, True, f"answers ({status})", advice)
    # Some servers have no list of models: that they answer at all is what matters here.
    return Finding(name, True, f"answers ({status})")


def _is_about_the_key(body: bytes) -> bool:
    """Gemini says 400 to a key it does not know."""
    failure = failures.from_body(400, body)
    return failure.kind is FailureKind.AUTHENTICATION or "api key" in failure.message.lower()


def _missing(config: Config, upstream: str, body: bytes) -> list[str]:
    """Models the config sends there by name that the upstream does not list; none where it lists nothing."""
    listing = parse_list(body)
    if not listing.names or not listing.whole:
        return []
    return [model for model in named_models(config, upstream) if model not in listing.names]
