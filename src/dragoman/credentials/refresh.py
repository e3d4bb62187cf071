"""Asking a token endpoint for a new access token (RFC 6749, section 6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import aiohttp
from yarl import URL

from ..secret import Secret
from .base import Problem
from .grant import Grant, from_table
from .spec import CredentialSpec, check_token_url
from .values import as_json, as_table

Post = Callable[[str, Mapping[str, Secret], Literal["form", "json"]], Awaitable[tuple[int, bytes] | Problem]]

KNOWN_ERRORS = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope"),
        *("unsupported_grant_type", "temporarily_unavailable", "server_error", "access_denied"),
        *("expired_token", "refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated"),
    }
)
"""Only these are repeated from an answer: anything else in it may be a secret."""

TIMEOUT = 20.0
MAX_ANSWER = 256 * 1024


class RefreshRefused(Problem, frozen=True):
    """The refresh token is no longer good: perhaps because somebody else has used it."""


async def refresh(
    spec: CredentialSpec,
    grant: Grant,
    environment: Mapping[str, str],
    clock: Callable[[], float],
    post: Post,
) -> Grant | Problem:
    """A new grant for the refresh token in `grant`."""
    url = spec.token_url or grant.token_url
    if problem := check_token_url(url):
        return Problem(f"the file {spec.path} names a token endpoint that cannot be used: {problem}")
    fields = _fields(spec, grant, environment)
    if isinstance(fields, Problem):
        return fields
    asked_at = clock()
    host = URL(url).host
    answer = await post(url, fields, spec.body)
    if isinstance(answer, Problem):
        return Problem(f"the token endpoint {host} {answer.why}")
    status, body = answer
    table = as_table(as_json(body))
    new = from_table(table, written=asked_at)
    if status != 200 or new.access is None:
        return _refusal(spec, host or url, status, table.get("error"))
    if new.refresh is not None:
        return new
    return Grant(access=new.access, refresh=grant.refresh, expires=new.expires, extras=new.extras)


def _fields(
    spec: CredentialSpec, grant: Grant, environment: Mapping[str, str]
) -> dict[str, Secret] | Problem:
    fields = {"grant_type": Secret("refresh_token")}
    if grant.refresh is not None:
        fields["refresh_token"] = grant.refresh
    if client := spec.client_id or grant.client_id:
        fields["client_id"] = Secret(client)
    secret = spec.client_secret or grant.client_secret
    if name := spec.client_secret_env:
        if not environment.get(name):
            return Problem(
                f"the environment variable {name} for `client_secret` is not set; set it and start again"
            )
        secret = Secret(environment[name])
    if secret is not None:
        fields["client_secret"] = secret
    return fields


def _refusal(spec: CredentialSpec, host: str, status: int, error: object) -> Problem:
    said = f", {error}" if isinstance(error, str) and error in KNOWN_ERRORS else ""
    if status in (400, 401, 403):
        return RefreshRefused(
            f"the token endpoint {host} refused the refresh token in {spec.path} (HTTP {status}{said}); "
            "sign in again in the program that keeps it"
        )
    return Problem(f"the token endpoint {host} gave no token (HTTP {status}{said})")


async def post_with_aiohttp(
    url: str, fields: Mapping[str, Secret], body: Literal["form", "json"]
) -> tuple[int, bytes] | Problem:
    """One request and its answer. Not followed elsewhere: a redirect would carry the refresh token along."""
    why = "does not answer; is the network up?"
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session:
            values = {name: value.reveal() for name, value in fields.items()}
            form, json = (None, values) if body == "json" else (values, None)
            headers = {"accept": "application/json"}
            async with session.post(
                url, data=form, json=json, headers=headers, allow_redirects=False
            ) as answer:
                return answer.status, await _body(answer)
    except TimeoutError:
        why = f"did not answer within {TIMEOUT:g} seconds"
    except (aiohttp.ClientError, OSError) as error:
        why = f"cannot be reached ({type(error).__name__})"
    return Problem(why)


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    data = b""
    async for piece in answer.content.iter_chunked(65536):
        data += piece
        if len(data) > MAX_ANSWER:
            return b""
    return data
