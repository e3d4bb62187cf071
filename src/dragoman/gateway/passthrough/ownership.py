"""Which key made a file or a batch at an upstream.

All keys of the gateway share one account there, and the upstream knows nothing of them. So the gateway
remembers who made what. A user reaches only its own files and batches, an admin all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ...config.types import UpstreamConfig
from ...model.errors import DragomanError, Fault
from ...protocols.common.fields import is_object
from ...protocols.facts import OtherEndpoint
from ...store import OWNERS, EntryKey, Store, StoredEntry, StoreError
from ...store.scoped import scoped
from ..caller import CallerIdentity

log = logging.getLogger("dragoman.gateway")

_NOBODY = b""
"""The owner of a deleted file or batch. A later one with the same id is not the same file."""


class NotOwned(DragomanError):
    """The key did not make the file or the batch, or it does not exist."""

    status = 404
    fault: Fault = "client"


def shares_account(caller: CallerIdentity, upstream: UpstreamConfig) -> bool:
    """Must the gateway hide from this client what other keys made at `upstream`?

    A client that sends its own key of the upstream has an account of its own.
    """
    return not caller.identity.sees_all and (upstream.credential.kind != "client" or caller.key is None)


class Ownership:
    """What one key made, at all upstreams."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store = store
        self._owner = owner.encode()

    async def check(self, upstream: str, parts: Mapping[str, str]) -> None:
        """Raise `NotOwned` if the path names something that another key made."""
        id = parts.get("id")
        if id is not None and not await self._own(upstream, [id]):
            raise NotOwned(
                f'this key made no "{id[:100]}" at {upstream}: a key of a user reaches only the files and '
                "batches that it made through this gateway"
            )

    async def process_answer(
        self, upstream: str, endpoint: OtherEndpoint, method: str, parts: Mapping[str, str], body: bytes
    ) -> bytes:
        """Remember what a successful answer names. Returns the answer, a list without what others made."""
        try:
            answer = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = None
        if method == "GET" and endpoint.listed and "id" not in parts:
            return await self._own_entries(upstream, endpoint, answer)
        if method == "DELETE":
            await self._remember(upstream, {parts["id"]: _NOBODY})
        elif is_object(answer):
            named = [found for path in endpoint.names if (found := _member(answer, path))]
            await self._remember(upstream, dict.fromkeys(named, self._owner))
        return body

    async def _own_entries(self, upstream: str, endpoint: OtherEndpoint, answer: Any) -> bytes:
        """The list with the entries of this key only."""
        page: dict[str, Any] = answer if is_object(answer) else {}
        entries: list[Any] = page.get(endpoint.listed) or []
        names = [_member(entry, endpoint.names[0]) if is_object(entry) else "" for entry in entries]
        own = await self._own(upstream, names)
        kept = [entry for entry, name in zip(entries, names, strict=True) if name in own]
        shown = {**page, endpoint.listed: kept}
        # OpenAI and Anthropic name the first and the last entry beside the list, too.
        for member, at in (("first_id", 0), ("last_id", -1)):
            if member in page:
                shown[member] = kept[at][endpoint.names[0]] if kept else None
        return msgspec.json.encode(shown)

    async def _own(self, upstream: str, names: Iterable[str]) -> set[str]:
        """Those of `names` that this key made. Raises StoreError: without the store, nobody can tell."""
        keys = {name: _key(upstream, name) for name in names if name}
        found = await self._store.get([*dict.fromkeys(keys.values())])
        return {name for name, key in keys.items() if found.get(key) == self._owner}

    async def _remember(self, upstream: str, owners: Mapping[str, bytes]) -> None:
        """Write the owners, but never in the place of another one."""
        keys = {_key(upstream, name): owner for name, owner in owners.items()}
        try:
            known = await self._store.get([*keys])
            free = (self._owner, _NOBODY)
            await self._store.put(
                [StoredEntry(key, owner) for key, owner in keys.items() if known.get(key, _NOBODY) in free]
            )
        except StoreError as error:
            log.warning("who made a file or a batch is not remembered: %s", error.message)


def _key(upstream: str, name: str) -> EntryKey:
    # Gemini writes `files/abc` in an answer, and the path has `abc` as the id.
    return scoped(OWNERS, upstream, name.rpartition("/")[2])


def _member(value: dict[str, Any], path: str) -> str:
    """The text at a path such as `file.id`; empty if there is none."""
    found: Any = value
    for name in path.split("."):
        found = found.get(name) if is_object(found) else None
    return found if isinstance(found, str) else ""
