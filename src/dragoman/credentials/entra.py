"""Entra ID tokens for Azure. azure-identity finds the login and asks for the token.

Its chain: environment, workload identity, managed identity, and the logins of Azure's tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from . import cloud_library
from .base import Reading, ReadProblem, Stamp
from .secret import Secret
from .spec import CredentialSpec

_SCOPE = "https://cognitiveservices.azure.com/.default"
_VARIABLES = (
    *("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH"),
    *("AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT"),
)
_MODULES = ("azure.identity", "azure.core.exceptions")


class EntraReader:
    """Asks azure-identity for a token when the variables change, or when the token is about to expire."""

    renews = True
    pause = cloud_library.PAUSE

    def __init__(self, spec: CredentialSpec, environment: Mapping[str, str]) -> None:
        self._scope = spec.scope or _SCOPE
        self._environment = environment

    def stamp(self) -> Stamp:
        return cloud_library.stamp(self._environment, _VARIABLES, ())

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        return await asyncio.to_thread(self._read)

    def _read(self) -> Reading | ReadProblem:
        modules = cloud_library.import_library("azure", *_MODULES)
        if isinstance(modules, ReadProblem):
            return modules
        identity, exceptions = modules
        try:
            # A new one for each read: the old one would give its cached token again.
            with identity.DefaultAzureCredential() as credential:
                found = credential.get_token(self._scope)
        except (exceptions.AzureError, OSError, ValueError) as error:
            return cloud_library.library_problem("Entra ID gives no token", error)
        secret = Secret(found.token)
        return Reading(secret, float(found.expires_on), sign=cloud_library.bearer(secret))
