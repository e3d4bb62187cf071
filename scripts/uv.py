"""Run uv with the machine's pip settings, which uv does not read by itself.

A machine with a mirror, a proxy or its own certificates is usually configured for pip. Variables of uv
override these settings.
"""

import ast
import os
import subprocess
import sys

# pip's setting -> uv's variable, and uv's separator between several values
SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
# pip trusts the system's certificates, and treats all indexes as one.
PARITY = {"UV_SYSTEM_CERTS": "1", "UV_INDEX_STRATEGY": "unsafe-best-match"}


def pip_settings() -> dict[str, str]:
    """The settings of `pip config list`: the environment overrides `[install]`, then `[global]`."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.partition(".")
        if section in sections:
            sections[section][name] = ast.literal_eval(value)
    return sections["global"] | sections["install"] | sections[":env:"]


def uv_environment() -> dict[str, str]:
    """The variables that make uv behave as pip is configured to."""
    settings = pip_settings()
    handed = {
        variable: separator.join(settings[name].split())
        for name, (variable, separator) in SETTINGS.items()
        if name in settings
    }
    return PARITY | handed | os.environ


if __name__ == "__main__":
    uv = os.path.join(os.path.dirname(sys.executable), "uv")
    os.execve(uv, [uv, *sys.argv[1:]], uv_environment())
