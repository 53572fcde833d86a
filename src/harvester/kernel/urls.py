"""Web addresses: what is valid, how they are displayed, and when two of them are the same product.

Nothing here uses the network. A tracked link is parsed, never followed: following it would count as a click.
"""

import hashlib
import ipaddress
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace

from harvester.kernel.link_rules import NO_NETWORK, LinkRules
from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.special_networks import address_of, is_public_host
from harvester.kernel.text import BLANKS, CONTROLS, is_encodable, trim

LONGEST_URL = 4096
#: Including a trailing dot; labels count in their ASCII form.
LONGEST_HOST = 254
LONGEST_LABEL = 63
HIGHEST_PORT = 65_535
#: Tracked links within tracked links: two occur, ten are an attack or a mistake.
DEEPEST_NESTING = 10
#: How often one landing address may have been percent-encoded.
MOST_ENCODINGS = 3
DEFAULT_PORTS = {"http": 80, "https": 443}

WEB_URL = r"([Hh][Tt][Tt][Pp][Ss]?)://([^/?#\\]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?"
AUTHORITY = r"([^:@\[\]]+|\[[^@\[\]]*\])(?::([0-9]*))?"
HOST_LABEL = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
NUMERIC_LABEL = "[0-9]+|0x[0-9a-f]*"
#: An escape, or a character that must be escaped. Excluded are the legal characters of a path or a query.
TO_NORMALIZE = "%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/?-]"
ASCII_ESCAPE = "%([0-7][0-9A-Fa-f])"
UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, kw_only=True)
class WebUrl:
    """A parsed and checked http or https address, every part as written.

    Attributes:
        origin: scheme, colon, slashes, host and port.
        host: in lower case, names in ASCII, without a dot at the end.
        port: none if it is the scheme's own.
        path: empty, or starting with a slash.
        query: none without a question mark.
        fragment: none without a number sign.
    """

    origin: str
    host: str
    port: int | None
    path: str
    query: str | None
    fragment: str | None

    @property
    def pairs(self) -> list[str]:
        """The parameters as written; empty ones between two ampersands are left out."""
        return [pair for pair in (self.query or "").split("&") if pair]

    def __str__(self) -> str:
        query = "" if self.query is None else f"?{self.query}"
        fragment = "" if self.fragment is None else f"#{self.fragment}"
        return f"{self.origin}{self.path}{query}{fragment}"


def split_url(text: str | None) -> WebUrl:
    """Parse an address.

    Raises:
        Rejected: it is missing, too long, or not a web address.
    """
    url = trim(text)
    if not url:
        raise Rejected(Fault.NO_URL)
    if len(url) > LONGEST_URL:
        raise Rejected(Fault.URL_TOO_LONG)
    if re.search(CONTROLS, url) or not is_encodable(url):
        raise Rejected(Fault.URL_CONTROLS)
    parts = re.fullmatch(WEB_URL, url)
    if not parts:
        raise Rejected(Fault.URL_NOT_WEB)
    scheme, authority, path, query, fragment = parts.groups()
    if "@" in authority:
        raise Rejected(Fault.URL_USER)
    if path and not path.startswith("/"):
        raise Rejected(Fault.URL_HOST)
    host, port = _host_and_port(authority, DEFAULT_PORTS[scheme.lower()])
    return WebUrl(origin=f"{scheme}://{authority}", host=host, port=port, path=path, query=query, fragment=fragment)


def is_web_url(text: str | None) -> bool:
    """Whether this is an http or https address with a host."""
    return _split_or_none(text) is not None


def is_public_url(text: str | None, rules: LinkRules = NO_NETWORK) -> bool:
    """Whether this is such an address, and its host is on the public internet or in an allowed network."""
    url = _split_or_none(text)
    return url is not None and is_public_host(url.host, rules.allowed_networks)


def unwrap_tracked(text: str | None, rules: LinkRules = NO_NETWORK) -> str:
    """Return the landing page inside a tracked link, however deep; any other address unchanged.

    A tracked link without a usable landing page stays a tracked link.

    Raises:
        Rejected: it is not an address, one of the addresses is not public, or too many links are nested.
    """
    url = split_url(text)
    for _ in range(DEEPEST_NESTING + 1):
        if not is_public_host(url.host, rules.allowed_networks):
            raise Rejected(Fault.URL_PRIVATE)
        landing = _landing(url, rules)
        if landing is None:
            return str(url)
        url = landing
    raise Rejected(Fault.URL_NESTED)


def canonical_url(text: str | None, rules: LinkRules = NO_NETWORK) -> str:
    """Return the address to display: unwrapped, without parameters of a click, otherwise unchanged."""
    url = split_url(unwrap_tracked(text, rules))
    kept = [pair for pair in url.pairs if not rules.is_click(_name(pair))]
    if len(kept) < len(url.pairs):
        url = replace(url, query="&".join(kept) or None)
    return re.sub(f"[{BLANKS}]", lambda blank: _respell(blank[0]), str(url))


def identity_url(text: str | None, rules: LinkRules = NO_NETWORK) -> str:
    """Return the form in which two addresses of the same product are equal. It has no scheme and is ASCII."""
    return _identity(text, rules, rules.is_tracking)


def link_identity(text: str | None, rules: LinkRules = NO_NETWORK) -> str:
    """Return the same with every displayed parameter: links of one product that differ here may be two products."""
    return _identity(text, rules, rules.is_click)


def canonical_page_url(text: str | None) -> str:
    """Return the address under which a product page is one target, however it was written. It is never fetched.

    https, host in lower case without `www.`, no tracking parameters, no empty ones, no fragment, parameters sorted by
    name, no slash at the end. Parameters that choose a product, such as `?sku=`, stay.

    Raises:
        Rejected: it is not a web address.
    """
    url = split_url(text)
    host = url.host
    while host.startswith("www.") and "." in host.removeprefix("www."):
        host = host.removeprefix("www.")
    port = "" if url.port in (None, DEFAULT_PORTS["https"]) else f":{url.port}"
    path = _normalize(url.path).rstrip("/") or "/"
    kept = [
        _normalize(pair.replace("+", " "))
        for pair in url.pairs
        # Some shops name a product by a bare text with a number, such as `?12345`.
        if (pair.partition("=")[2] or ("=" not in pair and re.search("[0-9]", pair)))
        and not NO_NETWORK.is_tracking(_name(pair))
    ]
    # Sorting is stable, so values of one name keep their order, which can matter.
    kept.sort(key=lambda pair: pair.partition("=")[0])
    query = "?" + "&".join(kept) if kept else ""
    page = f"https://{host}{port}{path}{query}"
    if len(page) > LONGEST_URL:
        raise Rejected(Fault.URL_TOO_LONG)
    return page


def _identity(text: str | None, rules: LinkRules, is_dropped: Callable[[str], bool]) -> str:
    url = split_url(unwrap_tracked(text, rules))  # mutant: unwrap-tracked
    port = "" if url.port is None else f":{url.port}"
    path = _normalize(url.path).rstrip("/")  # mutant: trailing-slash
    # In a query a plus is a blank, and a parameter without a value has an empty one.
    kept = sorted(
        _normalize((pair if "=" in pair else f"{pair}=").replace("+", " "))
        for pair in url.pairs
        if not is_dropped(_name(pair))
    )
    query = "?" + "&".join(kept) if kept else ""
    return f"{url.host}{port}{path}{query}"


def url_hash(identity: str) -> str:
    """Return 64 hexadecimal digits of SHA-256 over an identity URL."""
    return hashlib.sha256(identity.encode()).hexdigest()


def _host_and_port(authority: str, default_port: int) -> tuple[str, int | None]:
    parts = re.fullmatch(AUTHORITY, authority)
    if not parts:
        raise Rejected(Fault.URL_HOST)
    host, digits = parts.groups()
    port = int(digits) if digits else default_port
    if not 1 <= port <= HIGHEST_PORT:
        raise Rejected(Fault.URL_PORT)
    return _ascii_host(host), None if port == default_port else port


def _ascii_host(host: str) -> str:
    if host.startswith("["):
        try:
            address = ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise Rejected(Fault.URL_HOST) from None
        if address.scope_id:
            raise Rejected(Fault.URL_HOST)
        # Python's versions shorten such addresses differently, and an identity must not change.
        return f"[{address.packed.hex(':', 2)}]"
    if len(host) > LONGEST_HOST:
        raise Rejected(Fault.URL_HOST)
    # The ideographic full stop separates labels like the ASCII dot.
    spelled = unicodedata.normalize("NFKC", host).replace("\u3002", ".")
    ascii_host = ".".join(map(_ascii_label, spelled.removesuffix(".").split(".")))
    # No name ends with a number, so browsers treat such a host as an address, also 127.1 and 0x7f.1.
    is_malformed = re.fullmatch(NUMERIC_LABEL, ascii_host.rpartition(".")[2]) and address_of(ascii_host) is None
    if len(ascii_host) > LONGEST_HOST or is_malformed:
        raise Rejected(Fault.URL_HOST)
    return ascii_host


def _ascii_label(label: str) -> str:
    """Return one part of a host name in ASCII: punycode if needed, without IDNA 2003's loss of the sharp s."""
    lowered = unicodedata.normalize("NFKC", label.lower())
    if not lowered.isascii():
        if any(unicodedata.category(character)[0] not in "LMN" for character in lowered.replace("-", "")):
            raise Rejected(Fault.URL_HOST)
        lowered = "xn--" + lowered[:LONGEST_LABEL].encode("punycode").decode()
    if len(lowered) > LONGEST_LABEL or not re.fullmatch(HOST_LABEL, lowered):
        raise Rejected(Fault.URL_HOST)
    return lowered


def _landing(url: WebUrl, rules: LinkRules) -> WebUrl | None:
    """Return the landing page inside a tracked link; none if it is not tracked or has none."""
    if rules.tracked_path is None or not re.fullmatch(rules.tracked_path, _normalize(url.path).rstrip("/")):
        return None
    for parameter in rules.landing_parameters:
        for pair in url.pairs:
            name, _, value = pair.partition("=")
            if _decode(name) == parameter and (landing := _web_url_in(value)):
                return landing
    return None


def _web_url_in(value: str) -> WebUrl | None:
    """Return the address in a parameter, which may have been encoded more than once."""
    for _ in range(MOST_ENCODINGS):
        value = _decode(value)
        if url := _split_or_none(value):
            return url
    return None


def _split_or_none(text: str | None) -> WebUrl | None:
    try:
        return split_url(text)
    except Rejected:
        return None


def _decode(text: str) -> str:
    """Undo one encoding of a query. Only ASCII is decoded: the rest is legal encoded, in whatever charset it was."""
    return re.sub(ASCII_ESCAPE, lambda escape: chr(int(escape[1], 16)), text.replace("+", " "))


def _name(pair: str) -> str:
    return _decode(pair.partition("=")[0]).lower()


def _normalize(text: str) -> str:
    """Give every character its canonical form: escaped in capitals where it must be, plain where it may be."""
    return re.sub(TO_NORMALIZE, lambda found: _respell(found[0]), text)


def _respell(found: str) -> str:
    if len(found) == 1:
        return "".join(f"%{byte:02X}" for byte in found.encode())
    character = chr(int(found[1:], 16))
    return character if character in UNRESERVED else found.upper()
