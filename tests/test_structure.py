"""Nothing imports upward, the core does no I/O, no file or function is too long: one test per rule."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import dragoman
from dragoman.protocols.base import ClientProtocol, WireProtocol
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

ROOT = Path(dragoman.__file__).parent
LONGEST = 400
LONGEST_FUNCTION = 60

# From the bottom up. A module may import its own layer and those before it.
LAYERS = [
    "_version", "model", "wire", "protocols", "tools", "profiles", "translation", "library",
    # The I/O line: only packages below it may touch sockets, files, clocks and asyncio.
    "transport", "credentials", "config", "prices", "routing", "store", "shared", "access", "observe",
    "recording", "gateway", "conform", "offline", "cli",
]  # fmt: skip
CORE = {*LAYERS[: LAYERS.index("library")]}
# The library may import everything of the core.
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
    *("urllib.parse.quote", "urllib.parse.unquote"),  # pure functions on text
    "threading.Lock",  # a lock is no I/O
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def core_modules() -> list[Path]:
    return [path for path in modules() if top(path) in CORE]


def top(path: Path) -> str:
    """The first name below the package: a layer or a top-level module."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported(path: Path) -> Iterator[str]:
    """Every module that `path` imports, in full."""
    package = ["dragoman", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            yield from (".".join([*module, alias.name]) for alias in node.names)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_first_level_is_the_architecture() -> None:
    assert {top(path) for path in modules()} == {*LAYERS, "__init__", "__main__"}
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "_version.py"}


def inside(path: Path) -> set[str]:
    """The layers and top-level modules of Dragoman that `path` imports."""
    return {name.split(".")[1] for name in imported(path) if name.startswith("dragoman.")}


def called(path: Path) -> set[str]:
    """The unqualified names that `path` calls."""
    calls = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    return {call.id for call in calls if isinstance(call, ast.Name)}


def test_nothing_imports_upward() -> None:
    rank = {name: number for number, name in enumerate(LAYERS)}
    upward = [
        (relative(path), name)
        for path in modules()
        for name in inside(path) & rank.keys()
        if top(path) in rank and rank[name] > rank[top(path)]
    ]
    assert upward == []


def test_the_core_does_no_io_and_has_no_clock() -> None:
    doors = {"open", "print", "input", "eval", "exec", "__import__"}
    imports = [
        (relative(path), name)
        for path in core_modules()
        for name in imported(path)
        if name not in PURE and name.split(".")[0] in IO
    ]
    assert imports == []
    assert [(relative(path), called(path) & doors) for path in core_modules() if called(path) & doors] == []


def test_transport_imports_nothing_of_the_application() -> None:
    files = (ROOT / "transport").rglob("*.py")
    assert [relative(path) for path in files if not inside(path) <= {"transport", "_version"}] == []


def test_the_http_client_library_stays_in_six_files() -> None:
    knowing = [path for path in modules() if any(name.startswith("pycurl") for name in imported(path))]
    assert {*map(relative, knowing)} == {"transport/client/options.py"}
    asks = re.compile(r"^from \.options import .*\bcurl\b", re.MULTILINE)
    using = [path for path in modules() if asks.search(path.read_text())]
    names = ("curl", "faults", "multi", "transfer", "uploading")
    assert {*map(relative, using)} == {f"transport/client/{name}.py" for name in names}


def test_the_http_server_library_stays_in_four_files() -> None:
    knowing = [path for path in modules() if any(name.startswith("aiohttp") for name in imported(path))]
    names = ("connection", "incoming", "listener", "sockets")
    assert {*map(relative, knowing)} == {f"transport/server/{name}.py" for name in names}


# No internals of CPython or asyncio, no descriptors behind a transport, no state keyed by identity.
UNSAFE = {"getrefcount", "_asyncio_future_blocking", "readv", "writev", "id"}


def test_nothing_depends_on_internals_of_the_interpreter() -> None:
    def unsafe(path: Path) -> set[str]:
        nodes = list(ast.walk(tree(path)))
        attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)} - {"id"}
        strings = {node.value for node in nodes if isinstance(node, ast.Constant)} - {"id"}
        return (attributes | called(path) | {value for value in strings if isinstance(value, str)}) & UNSAFE

    assert [(relative(path), unsafe(path)) for path in modules() if unsafe(path)] == []


def test_the_judges_import_no_protocol_code() -> None:
    room = ROOT / "conform"
    judges = ["sse", "shape", "neutral", "corpus", "compare"]
    files = [*(room / f"{name}.py" for name in judges), *room.glob("laws/*.py"), *room.glob("reduce/*.py")]
    assert [relative(path) for path in files if inside(path) - {"conform"}] == []


def test_no_file_is_too_long() -> None:
    assert [relative(path) for path in modules() if len(path.read_text().splitlines()) > LONGEST] == []


def test_no_function_is_too_long() -> None:
    long = [
        (relative(path), node.name)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_every_module_has_a_docstring() -> None:
    silent = [path for path in modules() if tree(path).body and not ast.get_docstring(tree(path))]
    assert [relative(path) for path in silent] == []


def test_types_are_published() -> None:
    assert (ROOT / "py.typed").exists()


def test_public_names_exist() -> None:
    assert len(dragoman.__all__) == len(set(dragoman.__all__))
    assert [name for name in dragoman.__all__ if not hasattr(dragoman, name)] == []
    assert dir(dragoman) == sorted(dragoman.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dragoman.nothing


def test_no_public_name_is_also_a_module() -> None:
    """Importing a module binds its name in the package, which would shadow a lazily loaded public name."""
    assert {path.stem for path in ROOT.glob("*.py")} & {*dragoman.__all__} == set()
    assert {path.name for path in ROOT.iterdir() if path.is_dir()} & {*dragoman.__all__} == set()


@pytest.mark.parametrize("name", CLIENTS)
def test_every_protocol_is_complete(name: str) -> None:
    protocol = CLIENTS[name]
    assert isinstance(protocol, WireProtocol if name in PROTOCOLS else ClientProtocol)
    assert protocol.name == name
    assert protocol.ids.max_length > 0
    assert protocol.ids.legal("call_1")
    assert protocol.names.max_length >= 64
    # Law 29: a keepalive must be a complete frame, or nothing.
    assert protocol.keepalive == b"" or protocol.keepalive.endswith(b"\n\n")
    assert (ROOT / "protocols" / name.replace("-", "_") / "__init__.py").exists()


# Data tables that name the protocol of an agent or provider, and texts for people.
NAMING = {
    "protocols/registry.py": "the list of protocols",
    "profiles/agents.py": "known agents",
    "profiles/sdks.py": "known SDKs",
    "cli/run/agents.py": "agents that are started, and their settings",
    "offline/sdks.py": "known SDKs and their variables",
    "offline/volatile.py": "what agents write into their prompts",
    "config/upstream_keys.py": "the manual's words on options of some upstreams",
    "cli/demo/scenes.py": "the answers that `dragoman demo --show` plays",
    "observe/receipts/query.py": "`cursor` is a place in a list of pages here",
}


def folder(name: str) -> str:
    return name.replace("-", "_")


def literals(path: Path) -> Iterator[str]:
    """Every string and every imported module in `path`, without its docstrings."""
    tree = ast.parse(path.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in said:
            yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    yield from (name.removeprefix("dragoman.") for name in imported(path) if name.startswith("dragoman."))


def own_modules(name: str) -> set[Path]:
    """A protocol's folder, and modules elsewhere that are found by its name."""
    return {path for path in modules() if folder(name) in relative(path).removesuffix(".py").split("/")}


def test_no_module_outside_its_folder_names_a_protocol() -> None:
    """Facts about a protocol are in its record. Other modules look them up in the registry."""
    found: dict[str, set[str]] = {}
    for name in CLIENTS:
        named = re.compile(rf"(?<!\w)({re.escape(name)}|{re.escape(folder(name))})(?!\w)")
        for path in set(modules()) - own_modules(name):
            if relative(path).startswith(("protocols/cursor/", "conform/laws/", "conform/reduce/")):
                continue  # Cursor mixes all shapes; judges of similar protocols share code
            if any(map(named.search, literals(path))):
                found.setdefault(relative(path), set()).add(name)
    assert {path: names for path, names in found.items() if path not in NAMING} == {}
    assert {path for path in NAMING if (ROOT / path).exists()} <= set(found), (
        "a table that names none needs no exception"
    )
