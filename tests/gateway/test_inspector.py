"""The inspector's page without a browser: its files, access, and content security policy."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call

import dragoman
from dragoman.gateway.endpoints.inspector import page_files

FOLDER = Path(dragoman.__file__).parent / "observe" / "inspector"
FILES = sorted(path.name for path in FOLDER.iterdir())
SCRIPTS = [name for name in FILES if name.endswith(".js")]
UPSTREAM = '[upstreams.up]\nprotocol = "gemini"\nbase_url = "http://127.0.0.1:9"\ncredential = "none"\n'


@pytest.fixture(scope="module")
def served(loop: Loop) -> Iterator[Gateway]:
    with gateway(UPSTREAM, loop) as served:
        yield served


@pytest.fixture(scope="module")
def locked(loop: Loop) -> Iterator[Gateway]:
    with gateway('[server]\nkeys = ["the-key"]\n' + UPSTREAM, loop) as served:
        yield served


class Resources(HTMLParser):
    """Collects every URL that a page loads, and every attribute that could hold a script."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        addresses = [value or "" for name, value in attrs if name in ("src", "href", "action")]
        # A link to a place in the page itself loads nothing.
        self.addresses += [one for one in addresses if not (tag == "a" and one.startswith("#"))]
        self.inline += [name for name, _ in attrs if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in dict(attrs)):
            self.inline.append(tag)


def text(name: str) -> str:
    return (FOLDER / name).read_text()


def test_the_page_loads_only_files_that_are_served(served: Gateway) -> None:
    page = call(f"{served.url}/inspector")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    found = Resources()
    found.feed(page.body.decode())
    assert found.inline == []
    assert len(found.addresses) > 3
    for address in found.addresses:
        assert address.startswith("inspector/")
        assert call(f"{served.url}/{address}").status == 200


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_unchanged(name: str, served: Gateway) -> None:
    got = call(f"{served.url}/inspector/{name}")
    assert (got.status, got.body) == (200, (FOLDER / name).read_bytes())
    kinds = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    assert got.headers["content-type"].startswith(kinds[name.rpartition(".")[2]])
    assert got.headers["x-content-type-options"] == "nosniff"
    again = call(f"{served.url}/inspector/{name}", if_none_match=got.headers["etag"])
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", got.headers["etag"])
    assert call(f"{served.url}/inspector/{name}", if_none_match='"another"').status == 200


def test_the_policy_allows_no_foreign_source(served: Gateway) -> None:
    policy = call(f"{served.url}/inspector").headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert {rules[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
    assert {rules[name] for name in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert rules["img-src"] == "'self' data:"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in policy


@pytest.mark.parametrize("path", ["/inspector/nothing.js", "/inspector/../config/types.py", "/inspector/a/b"])
def test_other_files_are_not_served(path: str, served: Gateway) -> None:
    assert call(served.url + path).status == 404


def test_a_trailing_slash_redirects_to_the_page(served: Gateway) -> None:
    got = call(f"{served.url}/inspector/")
    assert (got.status, got.headers["location"]) == (308, "../inspector")


def test_no_file_names_an_outside_address() -> None:
    allowed = {"http://www.w3.org/2000/svg"}  # a namespace, never requested
    address = re.compile(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`)]*")
    assert [name for name in FILES if not set(address.findall(text(name))) <= allowed] == []


def test_text_never_becomes_markup_or_code() -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|srcdoc"
    assert [name for name in SCRIPTS if re.search(ways, text(name))] == []


def test_every_import_names_an_existing_export() -> None:
    for script in SCRIPTS:
        code = text(script)
        imports = re.findall(r'^import (?:\{([^}]*)\}|\* as \w+) from "\./([\w.]+)";', code, re.MULTILINE)
        assert len(imports) == len(re.findall(r"^import ", code, re.MULTILINE)), script
        for names, file in imports:
            exported = re.findall(r"(?m)^export (?:async )?(?:function\*? |const |class )(\w+)", text(file))
            assert {one.strip() for one in names.split(",") if one.strip()} <= set(exported), (script, file)


def test_no_file_is_too_long() -> None:
    assert [name for name in FILES if len(text(name).splitlines()) > 400] == []


def test_the_page_opens_without_a_key_and_the_exchanges_do_not(locked: Gateway) -> None:
    assert call(f"{locked.url}/inspector").status == 200
    assert [call(f"{locked.url}/inspector/{name}").status for name in FILES] == [200] * len(FILES)
    for path in ("/exchanges", "/exchanges/live", "/exchanges/1", "/exchanges/1/bytes", "/inspectors"):
        assert call(locked.url + path).status == 401


def test_a_foreign_host_header_does_not_get_the_page(served: Gateway) -> None:
    assert call(f"{served.url}/inspector", host="evil.example").status == 403


def test_a_foreign_origin_does_not_get_the_page(served: Gateway) -> None:
    assert call(f"{served.url}/inspector", origin="https://evil.example").status == 403


def test_the_wheel_holds_every_file() -> None:
    builder = WheelBuilder(str(Path(__file__).parents[2]))
    held = {item.distribution_path for item in builder.recurse_included_files()}
    assert {f"dragoman/observe/inspector/{name}" for name in FILES} <= held
    assert set(page_files()) == set(FILES)
