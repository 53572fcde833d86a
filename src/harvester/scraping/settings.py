"""The settings of scraping a source. Each is declared once: forms, commands, API and checks read this table.

They are stored in `sources.scrape_config`; what is not stored has its default.
"""

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import InvalidInput
from harvester.kernel.text import trim
from harvester.kernel.urls import is_web_url

#: Requests a second. More is not polite to any shop; less than one in 100 seconds is a mistake.
SLOWEST, FASTEST = 0.01, 5.0
#: What a shop gets that nobody has set a pace for: one request in two seconds.
DEFAULT_REQUESTS_PER_SECOND: Final = 0.5
MOST_HOSTS, MOST_HEADERS, LONGEST_HEADER = 20, 20, 500
SHORTEST_CACHE_SECONDS, LONGEST_CACHE_SECONDS = 60, 86_400
#: They belong to the HTTP client or would be a login.
DENIED_HEADERS: Final = frozenset({
    "user-agent", "cookie", "authorization", "host",
    # The same by other names, and what describes the message itself.
    "proxy-authorization", "cookie2", "content-length", "content-type", "transfer-encoding", "connection", "te",
    "trailer", "upgrade", "expect", "accept-encoding", "if-none-match", "if-modified-since", "range", "from",
    "forwarded", "x-forwarded-for", "via",
})  # fmt: skip
_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?(?::[0-9]{1,5})?")
_TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class InvalidSettings(InvalidInput):
    """Some settings are invalid.

    Attributes:
        problems: setting -> message, for forms.
    """

    code = "INVALID_SETTINGS"

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting of scraping a source.

    Attributes:
        read: its name and what somebody entered -> the value as it is stored, or InvalidInput.
        default: what counts while nothing is stored.
        label: one to three words.
        help: one sentence for people.
        section: the part of the form that it is in.
        public: whether readers without the right to change it, and API keys, see its value.
    """

    read: Callable[[str, Any], Any]
    default: Any
    label: str
    help: str
    section: str
    public: bool = True


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as they are stored; None restores a default.

    Raises:
        InvalidSettings: with all problems, not only the first.
    """
    read: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in given.items():
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETTINGS)}."
            problems[name] = f"Scraping has no setting {name!r}; {hint}"
            continue
        try:
            read[name] = None if value is None or value == "" else SETTINGS[name].read(name, value)
        except InvalidInput as problem:
            problems[name] = str(problem)
    if problems:
        raise InvalidSettings(problems)
    return read


def effective(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every setting: what is stored, otherwise its default."""
    return {name: stored.get(name, setting.default) for name, setting in SETTINGS.items()}


def _refused(name: str, value: Any, allowed: str) -> InvalidInput:
    return InvalidInput(f"{repr(value)[:80]} is not possible; it must be {allowed}.", field=name)


def _rate(name: str, value: Any) -> float:
    try:
        number = float(trim(value) if isinstance(value, str) else value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not SLOWEST <= number <= FASTEST:
        raise _refused(name, value, f"a number from {SLOWEST} to {FASTEST:g}: requests a second")
    return number


def _truth(name: str, value: Any) -> bool:
    word = value if isinstance(value, bool) else _TRUTH.get(trim(str(value)).lower())
    if word is None:
        raise _refused(name, value, "true or false")
    return word


def _seconds(name: str, value: Any) -> int:
    text = trim(value) if isinstance(value, str) else value
    number = int(text) if isinstance(text, str) and re.fullmatch("[0-9]{1,9}", text) else text
    low, high = SHORTEST_CACHE_SECONDS, LONGEST_CACHE_SECONDS
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise _refused(name, value, f"a whole number from {low} to {high}: seconds")
    return number


def _currency(name: str, value: Any) -> str:
    code = trim(value).upper() if isinstance(value, str) else ""
    if code not in MINOR_UNITS:
        raise _refused(name, value, "a currency code of ISO 4217 such as USD or EUR")
    return code


def _hosts(name: str, value: Any) -> list[str]:
    """Return unique hosts in lower case, given as a list or as one text with commas."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
        raise _refused(name, value, "host names with commas between them, such as outlet.shop.example")
    hosts = sorted({trim(item).lower() for item in given} - {""})
    is_readable = all(_HOST.fullmatch(host) and is_web_url(f"https://{host}/") for host in hosts)
    if len(hosts) > MOST_HOSTS or not is_readable:
        raise _refused(name, value, f"at most {MOST_HOSTS} host names with commas between them, such as a.shop.example")
    return hosts


def _headers(name: str, value: Any) -> dict[str, str]:
    """Return headers by name, given as a mapping or as lines `Name: value`."""
    if isinstance(value, str):
        lines = [line for line in value.splitlines() if line.strip()]
        if not all(":" in line for line in lines):
            raise _refused(name, value, "lines such as `Accept-Language: de`")
        value = {line.partition(":")[0]: line.partition(":")[2] for line in lines}
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise _refused(name, value, "headers by name")
    headers = {trim(header): trim(text) for header, text in value.items()}
    if len({header.lower() for header in headers}) < len(value) or len(headers) > MOST_HEADERS:
        raise _refused(name, list(headers), f"at most {MOST_HEADERS} headers, each once")
    for header, text in headers.items():
        if header.lower() in DENIED_HEADERS:
            raise InvalidInput(
                f"{header} cannot be set: Harvester always says who it is, never logs in, and writes the headers of "
                "the connection itself.",
                field=name,
            )
        if not _HEADER_NAME.fullmatch(header) or len(text) > LONGEST_HEADER or not _HEADER_VALUE.fullmatch(text):
            raise _refused(f"{name}.{header[:40]}", text, f"printable ASCII of at most {LONGEST_HEADER} characters")
    return headers


#: In the order in which people read them.
SETTINGS: Final[dict[str, Setting]] = {
    "requests_per_second": Setting(
        read=_rate,
        default=None,
        label="Requests a second",
        help=f"How fast the shop is read, {SLOWEST} to {FASTEST:g}; {DEFAULT_REQUESTS_PER_SECOND} if empty. The "
        "slowest source of a domain and the shop's own crawl delay win.",
        section="Pace",
    ),
    "pace_by_host": Setting(
        read=_hosts,
        default=[],
        label="Hosts of their own",
        help="Hosts of this shop that have their own pace because another server answers; all others share one.",
        section="Pace",
    ),
    "default_currency": Setting(
        read=_currency,
        default=None,
        label="Default currency",
        help="For pages that name no currency; without it such prices are not written.",
        section="Reading",
    ),
    "headers": Setting(
        read=_headers,
        default={},
        label="Extra headers",
        help="Sent with every request, such as Accept-Language; never User-Agent, Cookie, Authorization or Host.",
        section="Requests",
        public=False,
    ),
    "conditional": Setting(
        read=_truth,
        default=True,
        label="Conditional requests",
        help="Ask the shop only for pages that have changed; at least one full request a day.",
        section="Requests",
    ),
    "cache": Setting(
        read=_truth,
        default=False,
        label="Response cache",
        help="Use a page again that was fetched a short time ago, instead of fetching it again.",
        section="Requests",
    ),
    "cache_seconds": Setting(
        read=_seconds,
        default=3600,
        label="Cache for",
        help=f"Seconds that a cached page may be used, {SHORTEST_CACHE_SECONDS} to {LONGEST_CACHE_SECONDS:,}.",
        section="Requests",
    ),
}
