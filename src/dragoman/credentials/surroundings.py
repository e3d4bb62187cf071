"""The environment of a credential command: what programs need to run, and no secrets.

The gateway's environment holds the keys of its upstreams. A command gets the variables below and those that
the config names with `env`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    {
        # Who and where.
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM"),
        *("TMPDIR", "TMP", "TEMP"),
        # Agents, keyrings and prompts for a passphrase: sockets and displays, not secrets.
        *("SSH_AUTH_SOCK", "GPG_TTY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
        "DBUS_SESSION_BUS_ADDRESS",
        # Where tools keep their files.
        *("GNUPGHOME", "PASSWORD_STORE_DIR", "CLOUDSDK_CONFIG", "CLOUDSDK_PYTHON", "AZURE_CONFIG_DIR"),
        *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "KUBECONFIG"),
        # The way to the network.
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        # Windows does not start much without these.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA"),
        *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES"),
        *("USERPROFILE", "USERNAME", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "COMPUTERNAME"),
        *("NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"),
    }
)
_FAMILIES = ("LC_", "XDG_")


def surroundings(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """The part of `environment` that a command gets; `more` are names from the config."""
    wanted = frozenset(more)
    return {name: value for name, value in environment.items() if name in wanted or _is_usual(name)}


def _is_usual(name: str) -> bool:
    # Windows does not care about case, and proxies are written both ways.
    upper = name.upper()
    return upper in _NAMES or upper.startswith(_FAMILIES)
