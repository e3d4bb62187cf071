"""The replay server: the gateway itself, whose targets are recordings instead of upstreams."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ..config import loads
from ..config.types import Config, ToolsConfig, UpstreamConfig
from ..config.urls import endpoint
from ..gateway.exchange.incoming_request import IncomingRequest
from ..gateway.process.run import serve
from ..gateway.state import State
from ..model.errors import DragomanError
from ..observe.tap import Track
from ..protocols.registry import DEFAULT_PROTOCOL
from ..recording.kept_failures import KeptFailures
from ..recording.retention import RecordingLimits
from ..routing.router import ChosenTarget
from ..transport.client import open_client
from .faults import Fault, faulty, upstream_of
from .library import Library, NoRecording, RecordingEntry
from .upstream import ORIGIN, Answers, RecordedAnswer, opening

log = logging.getLogger("dragoman.replay")

OnMiss = Literal["fail", "record", "pass"]
_LARGEST_RECORDING = 1 << 30
_START_SECONDS = 30.0


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the server answers."""

    folder: Path
    on_miss: OnMiss = "fail"
    faults: Sequence[Fault] = ()
    on_answer: Callable[[str], None] = lambda line: None
    """Called with a line for each request."""
    on_missed: Callable[[str], None] = lambda message: None
    """Called with the reason for each request that no recording answers."""


class ReplayState(State):
    """The state of a gateway that answers from recordings."""

    def __init__(self, config: Config, settings: ReplaySettings) -> None:
        self._settings = settings
        self._library = Library(settings.folder)
        self._answers = Answers()
        self._bases: dict[str, str] = {}
        """The base URL of each running exchange's answer."""
        self._missed: set[str] = set()
        self._turns = 0
        self._attempts: Counter[Path] = Counter()
        others = None if settings.on_miss == "fail" else open_client
        super().__init__(config, client=opening(self._answers, others))
        self._new = KeptFailures(
            settings.folder,
            self.observed.redactor,
            RecordingLimits(bytes=_LARGEST_RECORDING),
            lambda: log.warning("an exchange is not recorded in %s", settings.folder),
            self._is_new,
        )
        self.observed.tap.on_end = self._over

    def targets_for(self, incoming: IncomingRequest) -> tuple[ChosenTarget, ...]:
        """The recording that answers the request, as a target. Raises NoRecording."""
        self._turns += 1
        try:
            entry = self._library.match(incoming.request)
        except NoRecording as error:
            self._settings.on_missed(error.message)
            if self._settings.on_miss == "fail":
                self._settings.on_answer(f"miss: {error.message}")
                raise
            self._missed.add(incoming.id)
            self._settings.on_answer(f"miss: {incoming.request.model} is asked")
            return super().targets_for(incoming)
        self._settings.on_answer(f"{entry.path.name}: {incoming.client.name}")
        return (self._choice(entry, incoming),)

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._new.close)

    def _choice(self, entry: RecordingEntry, incoming: IncomingRequest) -> ChosenTarget:
        self._attempts[entry.path] += 1
        turn = self._turns
        fault = next((fault for fault in self._settings.faults if fault.turn in (None, turn)), None)
        if fault is None:
            answer = RecordedAnswer(entry.calls)
        else:
            answer = RecordedAnswer(reply=faulty(entry, fault, incoming.request, self._attempts[entry.path]))
        base = self._bases[incoming.id] = self._answers.add(answer)
        protocol = upstream_of(entry, fault)
        name = entry.calls[0].request.upstream
        upstream = UpstreamConfig(name=name, protocol=protocol, endpoint=endpoint(base, protocol))
        model = incoming.request.model
        return ChosenTarget(
            upstream=upstream,
            model=model,
            params={},
            why=f"recording {entry.path.name}",
            key=f"{name}/{model}",
            target=upstream.target(model),
        )

    def _over(self, track: Track) -> None:
        self.observed.ledger.add(track)
        base = self._bases.pop(track.id, None)
        if base is not None:
            self._answers.remove(base)
        self._new.add(track)
        self._missed.discard(track.id)

    def _is_new(self, track: Track) -> bool:
        return self._settings.on_miss == "record" and track.id in self._missed and track.outcome == "ok"


def config_for(settings: ReplaySettings, host: str, port: int, real: Config | None) -> Config:
    """The config of a replay server. `real`: the config whose upstreams answer what was not recorded."""
    if real is None:
        return _replay_config(settings.folder, host, port)
    if settings.on_miss == "record":
        try:
            settings.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DragomanError(
                f"recordings cannot be written to {settings.folder}: {error.strerror}; give another folder"
            ) from None
    server = msgspec.structs.replace(
        real.server, host=host, port=port, unix=None, tls=None, store=None, record=None, workers=1
    )
    # No path: a change of the file must not bring the other address and store back.
    return msgspec.structs.replace(real, server=server, path=None)


def _replay_config(folder: Path, host: str, port: int) -> Config:
    """The config of a server that only replays: the models and the tool settings of the recordings."""
    entries = Library(folder).entries
    if not entries:
        raise DragomanError(
            f"{folder} has no recording that can be replayed; record with `dragoman serve --record {folder}` "
            "or with --on-miss record"
        )
    models = msgspec.json.encode(sorted({entry.request.model for entry in entries})).decode()
    text = f"""
        [server]
        host = "{host}"
        port = {port}
        retries = 0
        [upstreams.replay]
        protocol = "{DEFAULT_PROTOCOL.name}"
        base_url = "{ORIGIN}/0"
        credential = "none"
        models = {models}
        [[routes]]
        match = "*"
        to = "replay/*"
    """
    config = loads(text, shown="the replay", env={})
    return msgspec.structs.replace(config, tools=_tools(entries))


def _tools(entries: Sequence[RecordingEntry]) -> ToolsConfig:
    """The tool settings under which the recordings were made: they decide which requests follow."""
    setups = (call.request.setup for entry in entries for call in entry.calls)
    options = next((setup.options for setup in setups if setup is not None), None)
    if options is None:
        return ToolsConfig()
    return ToolsConfig(
        invalid=options.invalid, reask_attempts=options.reask_attempts, off=frozenset(options.rules_off)
    )


class ReplayServer:
    """A replay server in a thread. Use it with `with`."""

    def __init__(self, config: Config, settings: ReplaySettings) -> None:
        self.url = ""
        self._config = config
        self._settings = settings
        self._ready = threading.Event()
        self._error: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="dragoman-replay", daemon=True)

    def __enter__(self) -> ReplayServer:
        self._thread.start()
        self._ready.wait(_START_SECONDS)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - the thread that started the server raises it
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(url: str) -> None:
            self.url = url
            self._ready.set()

        await serve(
            self._config,
            ready=ready,
            stop=self._stop,
            signals=False,
            make_state=lambda config: ReplayState(config, self._settings),
        )
