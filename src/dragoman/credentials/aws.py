"""AWS credentials, and the signature (SigV4) of each request. botocore does both.

It looks for credentials in this order: environment, profile, SSO, assumed role, web identity, container and
instance roles.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from . import cloud_library
from .base import FinishedRequest, Reading, ReadProblem, Signer, Stamp
from .secret import Secret
from .spec import CredentialSpec

_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")
_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}
_MODULES = ("botocore.session", "botocore.auth", "botocore.awsrequest", "botocore.exceptions")

_SERVICE = "bedrock"
_OVERDUE = 30.0
"""Seconds after which credentials that could not be refreshed are refreshed again."""


class AwsReader:
    """Asks botocore for credentials when the variables or files change, or when they are about to expire."""

    renews = True
    pause = cloud_library.PAUSE

    def __init__(self, spec: CredentialSpec, environment: Mapping[str, str]) -> None:
        self._spec = spec
        self._environment = environment
        self._seen: tuple[int, ...] = ()
        """The `places` in which `_found` was found."""
        self._found: Any = None
        """botocore's credentials. They refresh themselves, but only if they are asked."""
        self._region = ""

    def stamp(self) -> Stamp:
        places = cloud_library.stamp(self._environment, _VARIABLES, self._paths())
        return Stamp((*places.marks, self._due()), places.settled)

    def _paths(self) -> list[str]:
        return [os.path.expanduser(self._environment.get(name) or path) for name, path in _FILES.items()]

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        return await asyncio.to_thread(self._read, force)

    def _read(self, force: bool) -> Reading | ReadProblem:
        modules = cloud_library.import_library("bedrock", *_MODULES)
        if isinstance(modules, ReadProblem):
            return modules
        sessions, auth, requests, exceptions = modules
        places = cloud_library.content_digest(self._environment, _VARIABLES, self._paths())
        try:
            if force or self._found is None or places != self._seen:
                session = sessions.Session(profile=self._spec.profile or None)
                self._found = session.get_credentials()
                self._region = self._spec.region or session.get_config_variable("region") or ""
                self._seen = places
            frozen = None if self._found is None else self._found.get_frozen_credentials()
        except (exceptions.BotoCoreError, exceptions.ClientError, OSError, ValueError) as error:
            return cloud_library.library_problem("AWS gives no credentials", error)
        if frozen is None or not frozen.access_key or not frozen.secret_key:
            return ReadProblem(
                "AWS credentials were not found; sign in (`aws sso login`), set AWS_PROFILE or "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role"
            )
        if not self._region:
            return ReadProblem("the region for the AWS signature is not known; set `region` of the upstream")
        secret = Secret(f"{frozen.access_key}:{frozen.secret_key}:{frozen.token or ''}")
        signer = _signer(auth, requests, frozen, self._spec.service or _SERVICE, self._region)
        # botocore uses old credentials until their last minutes if it gets no new ones, and does not say so.
        return Reading(secret, ttl=_OVERDUE if self._due() else None, sign=signer)

    def _due(self) -> bool:
        """Do temporary credentials want to be refreshed? The refresh itself waits for the network."""
        due = getattr(self._found, "refresh_needed", None)
        return bool(due()) if due else False


def _signer(auth: Any, requests: Any, credentials: Any, service: str, region: str) -> Signer:
    def sign(request: FinishedRequest) -> dict[str, str]:
        given = {name.lower(): value for name, value in request.headers.items()}
        signed = requests.AWSRequest(
            method=request.method, url=request.url, headers=dict(given), data=request.body
        )
        auth.SigV4Auth(credentials, service, region).add_auth(signed)
        headers = {str(name).lower(): str(value) for name, value in signed.headers.items()}
        return {name: value for name, value in headers.items() if given.get(name) != value}

    return sign
