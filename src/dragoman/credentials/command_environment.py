"""The environment variables that a credential command gets.

The gateway's environment contains the keys of all upstreams. So a command gets only the variables listed
below, and those that the config lists in `env`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_PASSED_ON = frozenset(
    {
        # User, locale and folders.
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM"),
        *("TMPDIR", "TMP", "TEMP"),
        # SSH and GPG agents, keyrings and passphrase prompts: sockets and displays, not secrets.
        *("SSH_AUTH_SOCK", "GPG_TTY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
        "DBUS_SESSION_BUS_ADDRESS",
        # Config files of password managers and cloud tools.
        *("GNUPGHOME", "PASSWORD_STORE_DIR", "CLOUDSDK_CONFIG", "CLOUDSDK_PYTHON", "AZURE_CONFIG_DIR"),
        *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "KUBECONFIG"),
        # Proxies and certificates.
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        # Most programs on Windows need these to start.
        *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA"),
        *("PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES"),
        *("USERPROFILE", "USERNAME", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "COMPUTERNAME"),
        *("NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"),
    }
)
_PREFIXES = ("LC_", "XDG_")


def command_environment(environment: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """The part of `environment` that a command gets. `more` are the names in the config."""
    wanted = frozenset(more)
    return {name: value for name, value in environment.items() if name in wanted or _is_common(name)}


def _is_common(name: str) -> bool:
    # Windows ignores case, and proxy variables exist in both cases.
    upper = name.upper()
    return upper in _PASSED_ON or upper.startswith(_PREFIXES)
