"""The manual has every key, every provider and every option of a credential."""

from pathlib import Path

import pytest

from dragoman.config.keys import SECTIONS, SMALL_TABLES, Key
from dragoman.config.providers import providers
from dragoman.credentials import spec

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text()
HEADS = {"a target": "### Targets", "a model": "### Models of an upstream", "loops": "### Loops"}


def row(name: str, key: Key) -> str:
    return f"| `{name}` | {key.type} | {_default(key.default)} | {key.doc} |"


def _default(written: str) -> str:
    if written in ("", "-"):
        return "*needed*" if not written else ""
    return written if "`" in written or written.startswith("its ") else f"`{written}`"


@pytest.mark.parametrize("section", [*SECTIONS, *SMALL_TABLES])
def test_every_key_has_its_row(section: str) -> None:
    head = HEADS.get(section, f"## `{section}`")
    assert head in PAGE
    part = PAGE.partition(f"{head}\n")[2].partition("\n## ")[0]
    for name, key in {**SECTIONS, **SMALL_TABLES}[section].items():
        assert row(name, key) in part


@pytest.mark.parametrize("name", providers())
def test_every_provider_has_its_row(name: str) -> None:
    assert f"| `{name}` | `{providers()[name].protocol}` |" in PAGE


def test_every_option_of_a_credential_is_there() -> None:
    part = PAGE.partition("### Credentials")[2].partition("\n### ")[0]
    options = {option for options in spec._OPTIONS.values() for option in options}
    assert [option for option in sorted(options) if option not in part] == []
