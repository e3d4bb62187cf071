"""Get a new access token from a token endpoint (RFC 6749, section 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal
from urllib.parse import urlencode

import msgspec

from ..transport.client import HttpError, Network, open_client
from ..transport.urls import parse
from .base import ReadProblem
from .grant import Grant, from_table
from .secret import Secret
from .spec import CredentialSpec, check_token_url
from .values import as_json, as_table

Post = Callable[
    [str, Mapping[str, Secret], Literal["form", "json"]], Awaitable[tuple[int, bytes] | ReadProblem]
]

KNOWN_ERRORS = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "invalid_scope"),
        *("unsupported_grant_type", "temporarily_unavailable", "server_error", "access_denied"),
        *("expired_token", "refresh_token_expired", "refresh_token_reused", "refresh_token_invalidated"),
    }
)
"""Error codes that a message may repeat. Any other text of the answer may be a secret."""

TIMEOUT = 20.0
_TYPES = {"form": "application/x-www-form-urlencoded", "json": "application/json"}
MAX_ANSWER = 256 * 1024


class RefreshRefused(ReadProblem, frozen=True):
    """The refresh token is no longer valid. Another program may have used it."""


async def refresh(
    spec: CredentialSpec,
    grant: Grant,
    environment: Mapping[str, str],
    clock: Callable[[], float],
    post: Post,
) -> Grant | ReadProblem:
    """Exchange the refresh token in `grant` for a new grant."""
    url = spec.token_url or grant.token_url
    if problem := check_token_url(url):
        return ReadProblem(f"the file {spec.path} has an invalid token endpoint: {problem}")
    fields = _fields(spec, grant, environment)
    if isinstance(fields, ReadProblem):
        return fields
    asked_at = clock()
    host = parse(url).host
    answer = await post(url, fields, spec.body)
    if isinstance(answer, ReadProblem):
        return ReadProblem(f"the token endpoint {host} {answer.why}")
    status, body = answer
    table = as_table(as_json(body))
    new = from_table(table, written=asked_at)
    if status != 200 or new.access is None:
        return _refusal(spec, host, status, table.get("error"))
    if new.refresh is not None:
        return new
    return Grant(access=new.access, refresh=grant.refresh, expires=new.expires, extras=new.extras)


def _fields(
    spec: CredentialSpec, grant: Grant, environment: Mapping[str, str]
) -> dict[str, Secret] | ReadProblem:
    fields = {"grant_type": Secret("refresh_token")}
    if grant.refresh is not None:
        fields["refresh_token"] = grant.refresh
    if client := spec.client_id or grant.client_id:
        fields["client_id"] = Secret(client)
    secret = spec.client_secret or grant.client_secret
    if name := spec.client_secret_env:
        if not environment.get(name):
            return ReadProblem(
                f"the environment variable {name} for `client_secret` is not set; set it and restart"
            )
        secret = Secret(environment[name])
    if secret is not None:
        fields["client_secret"] = secret
    return fields


def _refusal(spec: CredentialSpec, host: str, status: int, error: object) -> ReadProblem:
    code = f", {error}" if isinstance(error, str) and error in KNOWN_ERRORS else ""
    if status in (400, 401, 403):
        return RefreshRefused(
            f"the token endpoint {host} refused the refresh token in {spec.path} (HTTP {status}{code}); "
            "sign in again with the program that owns it"
        )
    return ReadProblem(f"the token endpoint {host} gave no token (HTTP {status}{code})")


def http_post(network: Network) -> Post:
    """A `Post` over HTTP, with the proxy and the certificates of the upstream."""

    async def post(
        url: str, fields: Mapping[str, Secret], body: Literal["form", "json"]
    ) -> tuple[int, bytes] | ReadProblem:
        return await _send(url, fields, body, network)

    return post


async def _send(
    url: str, fields: Mapping[str, Secret], body: Literal["form", "json"], network: Network
) -> tuple[int, bytes] | ReadProblem:
    """One request. Follows no redirect: it would send the refresh token to another address."""
    values = {name: value.reveal() for name, value in fields.items()}
    data = msgspec.json.encode(values) if body == "json" else urlencode(values).encode()
    headers = {"accept": "application/json", "content-type": _TYPES[body]}
    try:
        async with asyncio.timeout(TIMEOUT), open_client() as client:
            answer = await client.request("POST", url, headers, data, network=network)
            got = await answer.read(MAX_ANSWER + 1)
            return answer.status, got if len(got) <= MAX_ANSWER else b""
    except TimeoutError:
        return ReadProblem(f"did not answer within {TIMEOUT:g} seconds")
    except HttpError as error:
        return ReadProblem(str(error))
