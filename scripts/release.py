"""What a release needs from the checkout: its version, its notes, and the Homebrew formula.

python scripts/release.py version
python scripts/release.py notes            # the section of this version in CHANGELOG.md
python scripts/release.py formula SDIST    # from deploy/homebrew/dragoman.rb, for a tap
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
USAGE = "usage: release.py version | notes | formula SDIST"


def version() -> str:
    text = (ROOT / "src" / "dragoman" / "_version.py").read_text()
    found = re.search(r'__version__ = "([^"]+)"', text)
    if found is None:
        raise SystemExit("src/dragoman/_version.py has no version")
    return found[1]


def notes(name: str) -> str:
    """The changelog's section for the version `name`."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(name)}\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"CHANGELOG.md has no section [{name}]: rename [Unreleased], and date it")
    return found[1].strip() + "\n"


def formula(sdist: Path, repository: str) -> str:
    """The formula with the address and the hash of the release's source archive."""
    text = (ROOT / "deploy" / "homebrew" / "dragoman.rb").read_text()
    values = {
        "REPOSITORY": repository,
        "VERSION": version(),
        "ARCHIVE": sdist.name,
        "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
    }
    return re.sub(r"@([A-Z0-9]+)@", lambda found: values[found[1]], text)


def main(arguments: list[str]) -> None:
    write = sys.stdout.write
    match arguments:
        case ["version"]:
            write(version() + "\n")
        case ["notes"]:
            write(notes(version()))
        case ["formula", sdist]:
            server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
            repository = os.environ.get("GITHUB_REPOSITORY", "dragoman/dragoman")
            write(formula(Path(sdist), f"{server}/{repository}"))
        case _:
            raise SystemExit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
