"""The plan of the house, held: nothing imports upward, the core does no I/O, no file grows too long."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman.protocols.base import ClientProtocol, WireProtocol
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

ROOT = Path(dragoman.__file__).parent
LONGEST = 450

# From the bottom up. A module may import its own layer and those before it.
LAYERS: list[set[str]] = [
    {"errors", "_version"},
    {"messages", "events", "order"},
    {"wire"},
    {"protocols"},
    {"tools"},
    {"profiles"},
    {"serial", "passage", "body", "options"},
    {"exchange"},
    {"translating"},
]
CORE = set().union(*LAYERS)
# The library's doors open on everything the core has.
DOORS = {"__init__"}

# fmt: off
IO = {
    "asyncio", "concurrent", "ctypes", "datetime", "fileinput", "glob", "http", "logging",
    "multiprocessing", "os", "pathlib", "queue", "random", "secrets", "select", "selectors", "shelve",
    "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile", "threading", "time",
    "urllib", "uuid", "aiohttp", "anyio", "click", "httpx", "requests", "starlette", "trio", "uvicorn",
}
# fmt: on
PURE = {
    *("urllib.parse.quote", "urllib.parse.unquote"),  # text to text
    "threading.Lock",  # what threads have in common stays in order
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def core_modules() -> list[Path]:
    return [path for path in modules() if top(path) in CORE]


def top(path: Path) -> str:
    """The first name below the package: a layer, or a module of its own."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    """Every module that `path` imports, in full."""
    package = ["dragoman", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            yield from (".".join([*module, alias.name]) for alias in node.names)


def rank(name: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if name in layer)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_core_is_all_there() -> None:
    assert {top(path) for path in modules()} >= CORE


@pytest.mark.parametrize("path", core_modules(), ids=relative)
def test_nothing_imports_upward(path: Path) -> None:
    inside = {name.split(".")[1] for name in imported(path) if name.startswith("dragoman.")}
    strangers = inside - CORE
    assert not strangers, "the core knows nothing of what is built on it"
    assert [name for name in inside if rank(name) > rank(top(path))] == []


@pytest.mark.parametrize("path", core_modules(), ids=relative)
def test_the_core_does_no_io_and_has_no_clock(path: Path) -> None:
    assert [name for name in imported(path) if name not in PURE and name.split(".")[0] in IO] == []
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    named = {call.id for call in calls if isinstance(call, ast.Name)}
    assert named & {"open", "print", "input", "eval", "exec", "__import__"} == set()


def test_the_wires_know_only_the_errors() -> None:
    for path in (ROOT / "wire").glob("*.py"):
        inside = {name.split(".")[1] for name in imported(path) if name.startswith("dragoman.")}
        assert inside <= {"wire", "errors"}, path.name


def test_http_knows_nothing_of_what_it_carries() -> None:
    for path in (ROOT / "http").rglob("*.py"):
        inside = {name.split(".")[1] for name in imported(path) if name.startswith("dragoman.")}
        assert inside <= {"http", "_version"}, relative(path)


def test_the_judges_import_nothing_they_judge() -> None:
    room = ROOT / "conformance"
    judges = ["sse", "shape", "neutral", "corpus", "compare"]
    files = [*(room / f"{name}.py" for name in judges), *room.glob("laws/*.py"), *room.glob("reduce/*.py")]
    for path in files:
        inside = {name for name in imported(path) if name.startswith("dragoman.")}
        assert [name for name in inside if not name.startswith("dragoman.conformance.")] == [], relative(path)


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("path", modules(), ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert not text.strip() or ast.get_docstring(ast.parse(text))


def test_types_are_published() -> None:
    assert (ROOT / "py.typed").exists()


def test_public_names_are_there() -> None:
    assert len(dragoman.__all__) == len(set(dragoman.__all__))
    assert [name for name in dragoman.__all__ if not hasattr(dragoman, name)] == []
    assert dir(dragoman) == sorted(dragoman.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dragoman.nothing


def test_no_public_name_is_a_module_too() -> None:
    """Importing a module binds its name in the package: it would stand in the way of what is loaded late."""
    assert {path.stem for path in ROOT.glob("*.py")} & {*dragoman.__all__} == set()
    assert {path.name for path in ROOT.iterdir() if path.is_dir()} & {*dragoman.__all__} == set()


@pytest.mark.parametrize("name", CLIENTS)
def test_every_protocol_is_complete(name: str) -> None:
    protocol = CLIENTS[name]
    assert isinstance(protocol, WireProtocol if name in PROTOCOLS else ClientProtocol)
    assert protocol.name == name
    assert protocol.ids.longest > 0
    assert protocol.ids.legal("call_1")
    assert protocol.names.longest >= 64
    # Law 29: what keeps a connection alive must be a frame of its own, or nothing.
    assert protocol.keepalive == b"" or protocol.keepalive.endswith(b"\n\n")
    assert (ROOT / "protocols" / name.replace("-", "_") / "__init__.py").exists()
