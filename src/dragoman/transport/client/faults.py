"""What pyqwest's errors mean, as errors of ours.

pyqwest tells apart only a few kinds. What went wrong is in the error's text: the words of reqwest, hyper and
rustls, one cause after another. The text itself is never shown: it holds the request's URL.
"""

from __future__ import annotations

from pyqwest import ConnectTimeout as LibraryConnectTimeout
from pyqwest import ReadError, RemoteProtocolError, StreamError, StreamErrorCode, WriteError

from ..urls import PORTS, Url
from . import errors, proxies

LIBRARY_ERRORS = (OSError, ReadError, RemoteProtocolError, WriteError, RuntimeError)
"""What pyqwest raises while it sends a request or reads an answer."""

_CONNECTING = "client error (Connect)"
_NO_DESCRIPTOR = "Too many open files"
_CERTIFICATE = "invalid peer certificate: "
_NOT_HTTP = ("parsed", "head is too large", "Invalid chunk", "decompress", "Invalid gzip")
_CUT = ("unexpected end of file", "end of file before", "unexpected EOF")


def before_answer(error: BaseException, url: Url, proxy: str | None) -> errors.HttpError:
    """Why there is no answer from `url`, asked through `proxy`."""
    text = _causes(error)
    if isinstance(error, LibraryConnectTimeout):
        return errors.ConnectTimeout("cannot be reached in time")
    tls = _tls(text, url)
    if tls is not None:
        return tls
    if _NO_DESCRIPTOR in text:
        return errors.NoDescriptor(
            "cannot be asked: this process has no file descriptor left; allow more (ulimit -n)"
        )
    if _CONNECTING in text:
        return _not_connected(text, url, proxy)
    if isinstance(error, RemoteProtocolError) and _is_malformed(error, text):
        return errors.Malformed("answers with something that is not HTTP")
    return errors.Disconnected("closed the connection before it answered")


def amid_answer(error: BaseException) -> errors.HttpError:
    """Why there is no more of the answer."""
    text = _causes(error)
    if _is_malformed(error, text) and not any(word in text for word in _CUT):
        return errors.Malformed("sends a body that cannot be read")
    return errors.CutOff("broke off in the middle of its answer")


def login_wanted(proxy: str) -> errors.ProxyRefused:
    """The proxy does not know us (407)."""
    where = proxies.shown(proxy)
    if proxies.has_login(proxy):
        return _unreachable(
            f"the proxy {where} does not accept the log-in (HTTP 407); correct user and password in its URL"
        )
    return _unreachable(
        f"the proxy {where} wants a log-in (HTTP 407); put it into its URL: http://user:password@host:port"
    )


def _causes(error: BaseException) -> str:
    """The causes alone. Before them may stand the request's URL, which may hold any words."""
    text = str(error)
    return text[max(text.find("client error ("), 0) :]


def _is_malformed(error: BaseException, text: str) -> bool:
    if isinstance(error, StreamError):
        return error.code == StreamErrorCode.PROTOCOL_ERROR
    return any(word in text for word in _NOT_HTTP)


def _not_connected(text: str, url: Url, proxy: str | None) -> errors.HttpError:
    if proxy is not None:
        return _not_through(text, url, proxy)
    if "dns error" in text:
        return errors.UnknownHost(url.host, url.port, "has a host that cannot be found")
    return errors.CannotConnect(url.host, url.port, "refuses connections")


def _not_through(text: str, url: Url, proxy: str) -> errors.HttpError:
    where = proxies.shown(proxy)
    if "proxy authorization required" in text:
        return login_wanted(proxy)
    if "user/pass" in text or "credentials not accepted" in text:
        return login_wanted(proxy)
    if "dns error" in text or "error resolving" in text:
        return _unreachable(f"the host of the proxy {where} cannot be found; check its URL")
    if "failed to create underlying connection" in text or "tcp connect error" in text:
        return _unreachable(f"the proxy {where} refuses connections; is it running?")
    target = f"{url.bare}:{url.port or PORTS[url.scheme]}"
    return _unreachable(f"the proxy {where} does not connect to {target}; its log says why")


def _unreachable(why: str) -> errors.ProxyRefused:
    return errors.ProxyRefused(f"cannot be reached: {why}")


def _tls(text: str, url: Url) -> errors.BadTls | None:
    """The TLS failure that `text` tells of, if it does."""
    _, found, why = text.partition(_CERTIFICATE)
    if found:
        return errors.BadTls(_bad_certificate(why, url))
    if "received fatal alert" in text or "tls handshake eof" in text:
        return errors.BadTls(
            "breaks off the TLS handshake; if it wants a client certificate, give it with client_cert = PATH"
        )
    if "received corrupt message" in text:
        return errors.BadTls(
            f"does not speak TLS on port {url.port}; if it speaks plain HTTP, write http:// instead of https://"
        )
    return None


def _bad_certificate(why: str, url: Url) -> str:
    if why.startswith("certificate expired"):
        return (
            "has a TLS certificate that has expired; it must be renewed there, unless this machine's clock "
            "is wrong"
        )
    if why.startswith("certificate not valid yet"):
        return "has a TLS certificate that is not valid yet; is this machine's clock right?"
    if why.startswith("certificate not valid for name"):
        return f"has a TLS certificate for other names than {url.host}; use a name that it is made for"
    if why.startswith("UnknownIssuer"):
        return (
            "has a TLS certificate from an unknown issuer; if you trust it (a company's own, or "
            "self-signed), name the issuer's certificate with ca = PATH"
        )
    if why.startswith("Revoked"):
        return "has a TLS certificate that was revoked; it must be replaced there"
    return "has a TLS certificate that is not valid; ask who runs it"
