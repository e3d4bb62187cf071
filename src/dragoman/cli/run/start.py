"""Start an agent, forward signals to it, and exit with its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import msgspec

from ...model.errors import DragomanError
from ...routing.router import route
from ..serve.service import ServeOptions
from .gateway import GatewayInfo, running, started
from .model_check import similar_model, wrong_upstream
from .wiring import Agent, AgentEndpoint

Say = Callable[[str], None]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """Which agent to start, and how."""

    agent: Agent
    args: tuple[str, ...] = ()
    model: str | None = None
    options: ServeOptions = ServeOptions()


def start_agent(launch: Launch, env: Mapping[str, str], say: Say) -> int:
    """Run the agent until it exits. Returns its exit code."""
    program = shutil.which(launch.agent.program, path=env.get("PATH"))
    if program is None:
        raise DragomanError(
            f"{launch.agent.title} is not installed: `{launch.agent.program}` is not on the PATH; "
            f"install it with `{launch.agent.install}`"
        )
    return asyncio.run(_run(launch, program, env, say))


def endpoint(launch: Launch, gateway: GatewayInfo, folder: Path, env: Mapping[str, str]) -> AgentEndpoint:
    """The gateway's endpoint for this agent, with the model to use."""
    model = launch.model
    if model is None and launch.agent.needs_model:
        model = next(iter(gateway.models), None)
        if model is None:
            raise DragomanError(
                f"{launch.agent.title} needs a model, and the gateway lists none; "
                f"give one: dragoman run --model NAME {launch.agent.name}"
            )
    return AgentEndpoint(
        url=gateway.url,
        key=gateway.key,
        model=model,
        window=gateway.window(model),
        models=gateway.models,
        folder=folder,
        env=env,
    )


async def _run(launch: Launch, program: str, env: Mapping[str, str], say: Say) -> int:
    gateway = running(launch.options, env)
    if gateway is not None:
        _suggest_model(launch.model, gateway, say)
        return await _agent(launch, program, gateway, env)
    async with started(launch.options, env) as gateway:
        _check_route(launch.model, gateway)
        _suggest_model(launch.model, gateway, say)
        say(f"Dragoman is at {gateway.url} while {launch.agent.title} runs; its log is {gateway.log}")
        return await _agent(launch, program, gateway, env)


def _check_route(model: str | None, gateway: GatewayInfo) -> None:
    """Refuse a misspelt `--model` before the agent starts: the agent would show only a failed request.

    Only for a gateway of this process: one that is already running may have another config.
    """
    if model is None or gateway.config is None:
        return
    problem = wrong_upstream(gateway.config, model)
    if problem:
        raise DragomanError(f"--model {model}: {problem}")
    route(gateway.config, model)  # raises NoRoute, with a hint


def _suggest_model(model: str | None, gateway: GatewayInfo, say: Say) -> None:
    if model is not None and (near := similar_model(model, gateway.models)):
        say(f"The gateway does not list the model {model}; did you mean {near}?")


async def _agent(launch: Launch, program: str, gateway: GatewayInfo, env: Mapping[str, str]) -> int:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as name:
        folder = Path(name)
        wiring = launch.agent.wire(endpoint(launch, gateway, folder, env))
        wiring.write(folder)
        is_command = launch.args[:1] and launch.args[0] in launch.agent.commands
        args = launch.args if is_command else (*wiring.args, *launch.args)
        return await run_in_foreground(program, *args, env=wiring.environment(env))


async def run_in_foreground(program: str, *args: str, env: Mapping[str, str]) -> int:
    """Run a program on this terminal and forward signals to it. Returns its exit code."""
    signals = _SignalForwarder()
    with signals.installed():
        try:
            process = await asyncio.create_subprocess_exec(program, *args, env=dict(env))
        except OSError as error:
            raise DragomanError(f"{program} cannot be started: {error.strerror or error}") from None
        signals.forward_to(process)
        code = await process.wait()
    return code if code >= 0 else 128 - code  # like a shell: 128 plus the signal's number


class _SignalForwarder:
    """Forwards signals to the agent.

    A terminal sends Ctrl-C to its whole foreground group, so the agent gets that signal by itself. A signal
    from another process reaches only this process. The handlers are installed before the agent starts,
    because the agent may run before `create_subprocess_exec` returns.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._early: list[int] = []

    def forward_to(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        for number in self._early:
            self._send(number)

    @contextlib.contextmanager
    def installed(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        handled: list[int] = []
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
            with contextlib.suppress(NotImplementedError, AttributeError):  # Windows lacks most of them
                number = getattr(signal, name)
                loop.add_signal_handler(number, self._send, number)
                handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

    def _send(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGQUIT) and _in_foreground():
            return
        if self._process is None:
            self._early.append(number)
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp() if sys.__stdin__ else False
    except (OSError, ValueError, AttributeError):
        return False
