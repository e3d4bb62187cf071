"""Google's Application Default Credentials, for Vertex AI. google-auth finds and refreshes them.

They are a user's, a service account's, a workload identity's or the metadata server's.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from . import cloud_library
from .base import Reading, ReadProblem, Stamp
from .secret import Secret
from .spec import CredentialSpec

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_VARIABLES = (_FILE, "CLOUDSDK_CONFIG", "GCE_METADATA_HOST")
_MODULES = ("google.auth", "google.auth.transport.requests", "google.auth.exceptions")


class GoogleReader:
    """Asks google-auth for a token when the file changes, or when the token is about to expire."""

    renews = True
    pause = cloud_library.PAUSE

    def __init__(self, spec: CredentialSpec, environment: Mapping[str, str]) -> None:
        self._path = os.path.expanduser(spec.path) if spec.path else ""
        self._environment = environment
        self._seen: tuple[int, ...] = ()
        """The `places` in which `_found` was found."""
        self._found: Any = None

    def stamp(self) -> Stamp:
        return cloud_library.stamp(self._environment, _VARIABLES, (self._file(),))

    def _file(self) -> str:
        """The file that google-auth looks for first."""
        if self._path or self._environment.get(_FILE):
            return self._path or self._environment[_FILE]
        folder = self._environment.get("CLOUDSDK_CONFIG") or (
            os.path.join(self._environment.get("APPDATA", ""), "gcloud")
            if os.name == "nt"
            else os.path.expanduser("~/.config/gcloud")
        )
        return os.path.join(folder, "application_default_credentials.json")

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        return await asyncio.to_thread(self._read, force)

    def _read(self, force: bool) -> Reading | ReadProblem:
        modules = cloud_library.import_library("vertex", *_MODULES)
        if isinstance(modules, ReadProblem):
            return modules
        auth, transport, exceptions = modules
        places = cloud_library.content_digest(self._environment, _VARIABLES, (self._file(),))
        try:
            if force or self._found is None or places != self._seen:
                self._found, self._seen = self._load(auth), places
            found = self._found
            if not found.valid:
                found.refresh(transport.Request())
        except (exceptions.GoogleAuthError, OSError, ValueError) as error:
            return cloud_library.library_problem("Google gives no token", error)
        secret = Secret(found.token)
        # google-auth's times are UTC without a zone.
        expires = None if found.expiry is None else found.expiry.replace(tzinfo=UTC).timestamp()
        quota = getattr(found, "quota_project_id", None)
        more = {"x-goog-user-project": quota} if quota else None
        return Reading(secret, expires, sign=cloud_library.bearer(secret, more))

    def _load(self, auth: Any) -> Any:
        if not self._path:
            return auth.default(scopes=_SCOPES)[0]
        with warnings.catch_warnings():
            # It warns of files from strangers. This one is named in the config. google-auth does the same.
            warnings.simplefilter("ignore", DeprecationWarning)
            return auth.load_credentials_from_file(self._path, scopes=_SCOPES)[0]
