"""Probe every upstream of a config, with each of its keys.

Does the key resolve? Does the upstream answer? Does it list the models?
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from ...config.types import Config, UpstreamConfig
from ...gateway.state import State
from ...gateway.upstreams.model_list import MAX_LIST_SIZE, list_url, parse_list
from ...model.errors import DragomanError
from ...model.events import FailureKind
from ...protocols.common import failures
from ...routing.router import named_models
from ...transport.client import BadTls, HttpError, ProxyRefused, UnknownCoding

_SHOWN = 3


class Finding(msgspec.Struct, frozen=True):
    """The result for one key of one upstream."""

    name: str
    """The upstream; with the place of the key, if it has several."""
    ok: bool
    message: str
    advice: str = ""


async def check(config: Config, env: Mapping[str, str], time_limit: float = 10.0) -> list[Finding]:
    """Probe all upstreams at the same time. Each probe may take `time_limit` seconds."""
    in_memory = msgspec.structs.replace(config.server, store=None)  # a check must not write to the store
    state = State(msgspec.structs.replace(config, server=in_memory, warnings=()), env=env)
    try:
        probes = [
            _probe(state, one, _name(upstream, one), time_limit)
            for upstream in config.upstreams.values()
            for one in upstream.each_key or (upstream,)
        ]
        return list(await asyncio.gather(*probes))
    finally:
        await state.close()


def _name(upstream: UpstreamConfig, with_key: UpstreamConfig) -> str:
    return f"{upstream.name} with {with_key.credential.description}" if upstream.each_key else upstream.name


async def _probe(state: State, upstream: UpstreamConfig, name: str, time_limit: float) -> Finding:
    url = list_url(upstream)
    shown = url.partition("?")[0]
    if upstream.credential.kind == "client":
        return Finding(name, True, "not probed: it uses the key that the client sends")
    try:
        async with asyncio.timeout(time_limit):
            headers = await state.upstreams.keyring.headers(upstream, url)
            status, body = await state.upstreams.pool.get(url, headers, upstream, max_size=MAX_LIST_SIZE)
            return _judged(state.config, upstream, name, shown, status, body)
    except DragomanError as error:
        advice = "put the credential there, or change `credential` in the config"
        return Finding(name, False, error.message, advice)
    except TimeoutError:
        advice = "check that this machine can reach it"
        return Finding(name, False, f"no answer from {shown} in {time_limit:g} s", advice)
    except HttpError as error:
        # These three errors already say what to do.
        has_advice = isinstance(error, (BadTls, ProxyRefused, UnknownCoding))
        advice = "" if has_advice else "check that it is running and that base_url is right"
        return Finding(name, False, f"{shown} {error}", advice)


def _judged(
    config: Config, upstream: UpstreamConfig, name: str, url: str, status: int, body: bytes
) -> Finding:
    if 300 <= status < 400:
        advice = "set base_url to the address it redirects to; Dragoman sends no credential to a redirect"
        return Finding(name, False, f"{url} redirects to another address ({status})", advice)
    if status in (401, 403) or (status == 400 and _is_about_the_key(body)):
        advice = f"renew the credential in {upstream.credential.description}"
        return Finding(name, False, f"the upstream refuses the credential ({status})", advice)
    if status >= 500:
        return Finding(name, False, f"the upstream fails ({status} at {url})", "try again later")
    missing = _missing(config, upstream.name, body) if status < 300 else []
    if missing:
        advice = f"it does not list {', '.join(missing[:_SHOWN])}: check the names of the models"
        return Finding(name, True, f"answers ({status})", advice)
    # Some servers have no list of models and answer 404. Any answer proves that the address is right.
    return Finding(name, True, f"answers ({status})")


def _is_about_the_key(body: bytes) -> bool:
    """Gemini answers an unknown key with 400, not 401."""
    failure = failures.from_body(400, body)
    return failure.kind is FailureKind.AUTHENTICATION or "api key" in failure.message.lower()


def _missing(config: Config, upstream: str, body: bytes) -> list[str]:
    """Models that the config names for this upstream and that the upstream does not list.

    Empty if the upstream lists no models, or more than were read: then a missing name proves nothing.
    """
    listing = parse_list(body)
    if not listing.names or not listing.whole:
        return []
    return [model for model in named_models(config, upstream) if model not in listing.names]
