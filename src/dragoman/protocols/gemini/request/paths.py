"""The path of a Gemini request, which names its model."""

from __future__ import annotations

from urllib.parse import quote

from ...common.fields import reject


def path(model: str, stream: bool) -> str:
    """The path that a request for `model` is posted to.

    The client chooses the name, and the request carries the upstream's key: no name may lead elsewhere.
    """
    name = model.removeprefix("models/")
    if name and not {"", ".", ".."}.isdisjoint(name.split("/")):
        reject(
            f"{model[:80]!r} cannot stand in a path: a part between slashes is empty, '.' or '..'", "model"
        )
    folder = "" if name.startswith("tunedModels/") else "models/"
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{folder}{quote(name, safe='/:@')}:{verb}"
