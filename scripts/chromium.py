"""Print the path of Chromium, and install it first if possible. For `make test-browser`."""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def found() -> str | None:
    named = os.environ.get("DRAGOMAN_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def install() -> None:
    """Install Chromium as root on Debian or a derivative."""
    quiet = {"stdout": sys.stderr, "check": True, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    subprocess.run(["apt-get", "-o", "DPkg::Lock::Timeout=300", "update", "-qq"], **quiet)
    subprocess.run(
        [
            "apt-get",
            "-o",
            "DPkg::Lock::Timeout=300",
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            "chromium",
        ],
        **quiet,
    )


def main() -> None:
    if found() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install()
    where = found()
    if where is None:
        sys.exit(
            "The tests in a browser need Chromium: install it, or name it with DRAGOMAN_CHROMIUM=/path/to/it."
        )
    sys.stdout.write(where + "\n")


if __name__ == "__main__":
    main()
