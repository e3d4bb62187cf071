"""The manual has every key and every option of a credential."""

from pathlib import Path

from dragoman.config.keys import SECTIONS, SMALL_TABLES, ConfigKey
from dragoman.credentials import spec

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text()
HEADS = {
    "a target": "### Targets",
    "when": "### Conditions",
    "a model": "### Models of an upstream",
    "loops": "### Loops",
    "a price": "### Prices",
}


def row(name: str, key: ConfigKey) -> str:
    return f"| `{name}` | {key.type} | {_default(key.default)} | {key.doc} |"


def _default(written: str) -> str:
    if written in ("", "-"):
        return "*needed*" if not written else ""
    return written if "`" in written or written.startswith("its ") else f"`{written}`"


def test_every_key_is_documented() -> None:
    for section, keys in {**SECTIONS, **SMALL_TABLES}.items():
        head = HEADS.get(section, f"## `{section}`")
        assert head in PAGE
        part = PAGE.partition(f"{head}\n")[2].partition("\n## ")[0]
        assert [name for name, key in keys.items() if row(name, key) not in part] == [], section


def test_every_credential_option_is_documented() -> None:
    part = PAGE.partition("### Credentials")[2].partition("\n### ")[0]
    options = {option for options in spec._OPTIONS.values() for option in options}
    assert [option for option in sorted(options) if option not in part] == []
