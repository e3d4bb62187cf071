"""Turn libcurl's error codes into errors of this package.

The code gives the kind of failure. For TLS, the text gives the reason. The text itself is never shown: it may
contain the URL of the request, which may contain a key.
"""

from __future__ import annotations

import errno
import os

from ..urls import PORTS, Url
from . import errors, proxies
from .options import curl
from .transfer import Transfer

# Codes of libcurl that pycurl has no names for.
_E_TOO_LARGE = 100
_E_PROXY = 97
_E_HTTP2_STREAM = 92

_TLS = {
    curl.E_SSL_CONNECT_ERROR,
    curl.E_PEER_FAILED_VERIFICATION,
    curl.E_SSL_CACERT_BADFILE,
    curl.E_SSL_CERTPROBLEM,
    curl.E_SSL_CIPHER,
    curl.E_SSL_ISSUER_ERROR,
    curl.E_SSL_INVALIDCERTSTATUS,
}
_NOT_HTTP = {
    curl.E_FTP_WEIRD_SERVER_REPLY,  # libcurl's old name: it means a weird reply of any server
    curl.E_UNSUPPORTED_PROTOCOL,
    curl.E_BAD_CONTENT_ENCODING,
    curl.E_HTTP2,
    curl.E_WRITE_ERROR,
    _E_TOO_LARGE,
}
# OpenSSL's X509_V_ERR_*, as `SSL_VERIFYRESULT` gives them.
_TOO_EARLY, _EXPIRED, _REVOKED = 9, 10, 23
# OpenSSL's messages for bytes that are not TLS.
_NO_TLS = ("wrong version number", "packet length too long", "record layer failure", "unknown protocol")
# libcurl compares host names itself. Then OpenSSL's result is 0 (valid) or one of its name errors.
_OTHER_NAME = {0, 1, 62, 64}
_UNKNOWN_ISSUER = {2, 18, 19, 20, 21}
# CURLPX_NO_AUTH and CURLPX_USER_REJECTED
_SOCKS_LOGIN = {12, 33}


def explained(url: Url, proxy: str | None, transfer: Transfer, code: int, text: str) -> errors.HttpError:
    """Why the request to `url` through `proxy` got no answer, or only a part of it."""
    if transfer.head.complete:
        if code in _NOT_HTTP or "chunk" in text:
            return errors.Malformed("sends a body that cannot be read")
        return errors.CutOff("broke off in the middle of its answer")
    if transfer.lost:
        return errors.Disconnected("closed the connection before it answered")
    if not transfer.connected:
        return _not_connected(url, proxy, transfer, code, text)
    if code in _NOT_HTTP:
        return errors.Malformed("answers with something that is not HTTP")
    if code in _TLS or "alert" in text:
        return _tls(url, transfer, code, text)
    return errors.Disconnected("closed the connection before it answered")


def login_wanted(proxy: str) -> errors.ProxyRefused:
    """The proxy requires authentication, or refuses the given one (407)."""
    where = proxies.shown(proxy)
    if proxies.has_login(proxy):
        return _unreachable(
            f"the proxy {where} does not accept the login (HTTP 407); correct user and password in its URL"
        )
    return _unreachable(
        f"the proxy {where} requires a login (HTTP 407); put it into its URL: http://user:password@host:port"
    )


def no_descriptor() -> errors.NoDescriptor:
    return errors.NoDescriptor(
        "cannot be reached: this process has no file descriptor left; allow more (ulimit -n)"
    )


def _not_connected(url: Url, proxy: str | None, transfer: Transfer, code: int, text: str) -> errors.HttpError:
    if code == curl.E_OPERATION_TIMEDOUT:
        return errors.ConnectTimeout("cannot be reached in time")
    if _none_left():
        return no_descriptor()
    if proxy is not None and (refused := _not_through(url, proxy, transfer, code)):
        return refused
    if code in _TLS:
        return _tls(url, transfer, code, text)
    if code in (curl.E_COULDNT_RESOLVE_HOST, curl.E_URL_MALFORMAT):
        return errors.UnknownHost(url.host, url.port, "has a host that cannot be found")
    if code in (curl.E_RECV_ERROR, curl.E_SEND_ERROR, curl.E_GOT_NOTHING):
        return errors.Disconnected("closed the connection before it answered")
    return errors.CannotConnect(url.host, url.port, "refuses connections")


def _none_left() -> bool:
    """Has the process run out of file descriptors? libcurl does not say why it got no socket."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def _not_through(url: Url, proxy: str, transfer: Transfer, code: int) -> errors.HttpError | None:
    """The error of the proxy; None if the proxy made the connection."""
    where = proxies.shown(proxy)
    status = transfer.handle.getinfo(curl.HTTP_CONNECTCODE)
    if status == 407 or code == curl.E_LOGIN_DENIED:
        return login_wanted(proxy)
    if code == curl.E_COULDNT_RESOLVE_PROXY:
        return _unreachable(f"the host of the proxy {where} cannot be found; check its URL")
    if code == _E_PROXY and transfer.handle.getinfo(curl.PROXY_ERROR) in _SOCKS_LOGIN:
        return login_wanted(proxy)
    if code == curl.E_COULDNT_CONNECT and not status:
        return _unreachable(f"the proxy {where} refuses connections; is it running?")
    if code in _TLS:
        if proxy.startswith("https:") and not status:
            return _unreachable(
                f"there is no TLS connection to the proxy {where}; if it has a company's own certificate, "
                "name the issuer's with ca = PATH"
            )
        return None
    target = f"{url.bare}:{url.port or PORTS[url.scheme]}"
    return _unreachable(f"the proxy {where} does not connect to {target}; its log says why")


def _unreachable(why: str) -> errors.ProxyRefused:
    return errors.ProxyRefused(f"cannot be reached: {why}")


def _tls(url: Url, transfer: Transfer, code: int, text: str) -> errors.BadTls:
    if code == curl.E_PEER_FAILED_VERIFICATION:
        return errors.BadTls(_bad_certificate(transfer.handle.getinfo(curl.SSL_VERIFYRESULT), url))
    if any(words in text for words in _NO_TLS):
        return errors.BadTls(
            f"does not speak TLS on port {url.port}; if it speaks plain HTTP, write http:// instead of https://"
        )
    return errors.BadTls(
        "breaks off the TLS handshake; if it wants a client certificate, give it with client_cert = PATH"
    )


def _bad_certificate(result: int, url: Url) -> str:
    if result == _EXPIRED:
        return (
            "has a TLS certificate that has expired; it must be renewed there, unless this machine's clock "
            "is wrong"
        )
    if result == _TOO_EARLY:
        return "has a TLS certificate that is not valid yet; is this machine's clock right?"
    if result in _OTHER_NAME:
        return f"has a TLS certificate for other names than {url.host}; use a name that it is made for"
    if result in _UNKNOWN_ISSUER:
        return (
            "has a TLS certificate from an unknown issuer; if you trust it (a company's own, or "
            "self-signed), name the issuer's certificate with ca = PATH"
        )
    if result == _REVOKED:
        return "has a TLS certificate that was revoked; it must be replaced there"
    return "has a TLS certificate that is not valid; ask who runs it"
