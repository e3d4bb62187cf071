"""The manual has every key, every provider and every option of a credential."""

from pathlib import Path

from dragoman.config.keys import SECTIONS, SMALL_TABLES, ConfigKey
from dragoman.config.providers import providers
from dragoman.credentials import spec

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text()
HEADS = {"a target": "### Targets", "a model": "### Models of an upstream", "loops": "### Loops"}


def row(name: str, key: ConfigKey) -> str:
    return f"| `{name}` | {key.type} | {_default(key.default)} | {key.doc} |"


def _default(written: str) -> str:
    if written in ("", "-"):
        return "*needed*" if not written else ""
    return written if "`" in written or written.startswith("its ") else f"`{written}`"


def test_every_key_has_its_row() -> None:
    for section, keys in {**SECTIONS, **SMALL_TABLES}.items():
        head = HEADS.get(section, f"## `{section}`")
        assert head in PAGE
        part = PAGE.partition(f"{head}\n")[2].partition("\n## ")[0]
        assert [name for name, key in keys.items() if row(name, key) not in part] == [], section


def test_every_provider_has_its_row() -> None:
    rows = {name: f"| `{name}` | `{provider.protocol}` |" for name, provider in providers().items()}
    assert [name for name, shown in rows.items() if shown not in PAGE] == []


def test_every_option_of_a_credential_is_there() -> None:
    part = PAGE.partition("### Credentials")[2].partition("\n### ")[0]
    options = {option for options in spec._OPTIONS.values() for option in options}
    assert [option for option in sorted(options) if option not in part] == []
