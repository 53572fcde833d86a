"""The one door for HTTP. Nothing else may import a client library.

No proxy, no cookie, nothing of the environment, no redirect unless asked for; every hop is judged like the first.
The body is counted as it is sent and as it is inflated. Whatever the status, the answer is returned: only the caller
knows what it means. The errors are those of http_network.py, remote.py, egress.py and inflate.py, and

TerminalError
├── ResponseTooLarge        the body is larger than it may be
├── TooManyRedirects        each answer leads to the next address
└── InvalidInput
    └── InvalidUrl          not http or https with a host, or with a password in it
"""

import ssl
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpcore
import httpx

from harvester.guards.egress import EgressPolicy
from harvester.guards.http_network import BadHttpAnswer, Deadline, GuardedNetwork, told_plainly
from harvester.guards.inflate import InflateLimits, inflate
from harvester.kernel.errors import InvalidInput, TerminalError

MOST_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
#: What is asked with these may be asked elsewhere again: it changes nothing.
SAFE_METHODS = frozenset({"GET", "HEAD"})
OUR_HEADERS = {"user-agent": "harvester", "accept-encoding": "gzip", "connection": "close"}


class ResponseTooLarge(TerminalError):
    """The body is larger than it may be."""

    code = "RESPONSE_TOO_LARGE"


class TooManyRedirects(TerminalError):
    """Each answer leads to the next address."""

    code = "TOO_MANY_REDIRECTS"


class InvalidUrl(InvalidInput):
    """The address cannot be asked."""

    code = "INVALID_URL"


@dataclass(frozen=True, kw_only=True)
class HttpLimits:
    """How long, and how much.

    Attributes:
        connect: seconds for the connection, and again for TLS.
        read: seconds of silence.
        total: seconds for everything, all hops together.
        body_bytes: of a body as it is sent.
        inflated_bytes: of a body as it is read.
    """

    connect: float = 10.0
    read: float = 30.0
    total: float = 120.0
    body_bytes: int = 10 * 1024 * 1024
    inflated_bytes: int = 50 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    """What came back.

    Attributes:
        url: where it came from, after all hops.
        status: the number.
        headers: by name in small letters.
        body: inflated.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def request(
    method: str,
    url: str,
    *,
    policy: EgressPolicy,
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
    limits: HttpLimits | None = None,
    redirects: int = 0,
    tls: ssl.SSLContext | None = None,
) -> HttpAnswer:
    """Ask a server, and follow its redirects where that is asked for and the method is safe.

    Args:
        method: GET, POST and so on.
        url: http or https.
        policy: where connections may lead.
        headers: of the caller; none of them is sent to another origin than the first.
        content: the body.
        limits: how long, and how much.
        redirects: how many are followed, five at the most.
        tls: whom to trust, if not the public authorities.
    """
    first = target = _checked(url)
    door = _Door(policy, limits or HttpLimits(), tls or _public_authorities())
    for left in range(min(redirects, MOST_REDIRECTS), -1, -1):
        answer = door.ask(method, target, _headers(headers or {}, first, target), content)
        onward = answer.headers.get("location") if answer.status in REDIRECTS else None
        if onward is None or not redirects or method not in SAFE_METHODS:
            return answer
        if left:
            target = _checked(onward, target)
    raise TooManyRedirects(f"{first.host} leads from one address to the next; {redirects} were followed.")


class _Door:
    """One exchange: the time is counted over all of its hops."""

    def __init__(self, policy: EgressPolicy, limits: HttpLimits, tls: ssl.SSLContext) -> None:
        self._limits, self._tls = limits, tls
        self._deadline = Deadline(limits.total)
        self._network = GuardedNetwork(policy, self._deadline)

    def ask(self, method: str, url: httpx.URL, headers: Mapping[str, str], content: bytes) -> HttpAnswer:
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        patience = {"connect": self._limits.connect, "read": self._limits.read, "write": self._limits.read}
        options: dict[str, Any] = {"headers": headers, "content": content or None, "extensions": {"timeout": patience}}
        with (
            told_plainly(url.host, self._deadline),
            httpcore.ConnectionPool(ssl_context=self._tls, network_backend=self._network) as pool,
            pool.stream(method, target, **options) as answer,
        ):
            read = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
            body = b"".join(self._inflated(answer.iter_stream(), read.get("content-encoding", "identity")))
        return HttpAnswer(url=str(url), status=answer.status, headers=read, body=body)

    def _inflated(self, blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
        if encoding.lower() == "identity":
            return self._counted(blocks)
        if encoding.lower() in ("gzip", "x-gzip"):
            return inflate(self._counted(blocks), limits=InflateLimits(output_bytes=self._limits.inflated_bytes))
        raise BadHttpAnswer(f"The answer is encoded as {encoding[:50]!r}, which was not asked for.")

    def _counted(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        size = 0
        for block in blocks:
            size += len(block)
            if size > self._limits.body_bytes:
                raise ResponseTooLarge(f"The answer has more than {self._limits.body_bytes} bytes and was given up.")
            yield block


def _checked(url: str, base: httpx.URL | None = None) -> httpx.URL:
    try:
        target = base.join(url) if base else httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise InvalidUrl("The address cannot be read; it must look like https://host/path.") from None
    if target.scheme not in ("http", "https") or not target.host:
        raise InvalidUrl(f"The address begins with {target.scheme or 'no scheme'!r}; it must be http or https.")
    if target.userinfo:
        raise InvalidUrl("The address holds a user name or a password; nothing was asked.")
    return target


def _headers(callers: Mapping[str, str], first: httpx.URL, target: httpx.URL) -> dict[str, str]:
    """Credentials may hide in any header of the caller, so none of them crosses to another origin."""
    is_same = (first.scheme, first.host, first.port) == (target.scheme, target.host, target.port)
    return {**OUR_HEADERS, **({name.lower(): value for name, value in callers.items()} if is_same else {})}


@cache
def _public_authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
