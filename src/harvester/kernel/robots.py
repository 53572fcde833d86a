"""What a shop's robots.txt allows (RFC 9309), read so that a doubt never becomes a visit.

- A page is allowed only if our own group and the group of everybody (`*`) both allow it.
- A file with misspelled lines has two readings: by the letter of the RFC, which ignores such lines, and as common
  crawlers guess them. Both must allow.
- An encoded and a plain delimiter (`%2F` and `/`) are the same where a line disallows, and different where it allows.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from operator import itemgetter
from typing import Final

#: Bytes that count; what follows is not read (RFC 9309, 2.5).
MOST_BYTES: Final = 500 * 1024
#: Seconds between two requests that a crawl-delay can ask for.
SHORTEST_DELAY, LONGEST_DELAY = 1.0, 60.0
#: The group of everybody without a group.
EVERYBODY: Final = "*"

_BLANKS: Final = " \t\v\f\0"
_TOKEN: Final = re.compile(r"[A-Za-z_-]+")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
#: Escapes, and characters that have to be escaped. `*` and `$` are handled by the callers.
_TO_NORMALIZE: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]-]")
#: The same for many patterns, one in each line.
_TO_NORMALIZE_IN_LINES: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]\n-]")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Added to an octet that has to be escaped.
_ESCAPED: Final = 256
#: Without `*` and `$`, which escaped are plain characters and otherwise have a meaning.
_PLAIN_DELIMITERS: Final = {_ESCAPED + ord(character): character for character in ":/?#[]@!&'()+,;="}
_NAMES: Final = ("user-agent", "allow", "disallow", "crawl-delay")
_UNKNOWN: Final = ("", "")
#: What people write for a name -> the name.
_MISSPELLED: Final = {
    "useragent": "user-agent",
    "user agent": "user-agent",
    "dissallow": "disallow",
    "dissalow": "disallow",
    "disalow": "disallow",
    "diasllow": "disallow",
    "disallaw": "disallow",
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A line that allows or disallows.

    Attributes:
        line: its number, from 1.
        is_allow: whether it allows.
        pattern: as written, one character for each byte.
        agent: the group in which it was found: "*", or a product token in lower case.
    """

    line: int
    is_allow: bool
    pattern: str
    agent: str

    def __str__(self) -> str:
        pattern = self.pattern.encode("latin-1").decode(errors="replace")
        return f"line {self.line} for {self.agent}: {'Allow' if self.is_allow else 'Disallow'}: {pattern}"


class _Group:
    """What was said about one agent anywhere in the file."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        #: Number of the line, whether it allows, pattern. A file can have 50,000, so these are not objects.
        self.rules: list[tuple[int, bool, str]] = []
        self.delay: float | None = None

    def slow_down(self, seconds: float) -> None:
        self.delay = max(seconds, self.delay or seconds)

    @cached_property
    def ranked(self) -> list[tuple[int, bool, int, list[str], str]]:
        """The rules, the longest pattern first, and of two equally long ones the one that allows.

        Per rule: its rank, whether it disallows, line, the texts between its asterisks, and the pattern.
        """
        if not self.rules:
            return []
        # Half of a path was meant as a path where it disallows; it matches nothing where it allows.
        texts = [pattern if is_allow or pattern[0] in "/*$" else f"/{pattern}" for _, is_allow, pattern in self.rules]
        plain = [text.removesuffix("$").replace("$", "%24") if "$" in text else text for text in texts]
        # All at once: a pattern has no line break.
        exacts = _TO_NORMALIZE_IN_LINES.sub(lambda found: _octet(found[0]), "\n".join(plain)).split("\n")
        found = []
        for (line, is_allow, pattern), exact in zip(self.rules, exacts, strict=True):
            octets, compared = len(exact) + (pattern[-1] == "$"), exact
            if not exact.isascii():
                # Each escape is one character here.
                octets += 2 * (len(exact) - len(exact.encode("ascii", "ignore")))
                compared = exact if is_allow else exact.translate(_PLAIN_DELIMITERS)
            found.append((-2 * octets + (not is_allow), not is_allow, line, compared.split("*"), pattern))
        found.sort(key=itemgetter(0))
        return found

    def deciding(self, exact: str, lenient: str) -> Rule | None:
        """Return the rule that decides about an address, given in both normal forms."""
        for _, is_disallow, line, parts, pattern in self.ranked:
            address = lenient if is_disallow else exact
            if address.startswith(parts[0]) and _matches(address, parts, is_ending=pattern[-1] == "$"):
                return Rule(line=line, is_allow=not is_disallow, pattern=pattern, agent=self.agent)
        return None


@dataclass(frozen=True, kw_only=True)
class Robots:
    """A robots.txt that was read. `str(rule)` of a blocking rule is for people."""

    readings: tuple[dict[str, _Group], ...]

    def allows(self, target: str, agent: str) -> bool:
        """Whether `agent`, a product token or a User-Agent that begins with it, may fetch a path with its query."""
        return self.blocking_rule(target, agent) is None

    def blocking_rule(self, target: str, agent: str) -> Rule | None:
        """Return the line that forbids a path with its query; none if it may be fetched."""
        if target == "/robots.txt":
            return None
        text = target.encode(errors="surrogatepass").decode("latin-1").replace("*", "%2A").replace("$", "%24")
        if not text.startswith("/"):
            text = "/" + text
        exact = normalize(text)
        lenient = exact.translate(_PLAIN_DELIMITERS)
        for group in self._groups_of(agent):
            rule = group.deciding(exact, lenient)
            if rule and not rule.is_allow:
                return rule
        return None

    def crawl_delay(self, agent: str) -> float | None:
        """Return the seconds between two requests that the file asks for, between 1 and 60; none if it does not."""
        asked = [group.delay for group in self._groups_of(agent) if group.delay is not None]
        return min(max(*asked, SHORTEST_DELAY), LONGEST_DELAY) if asked else None

    def _groups_of(self, agent: str) -> Iterator[_Group]:
        for reading in self.readings:
            for name in (_token(agent), EVERYBODY):
                if name in reading:
                    yield reading[name]


#: No rules: what a robots.txt that does not exist means.
NO_RULES: Final = Robots(readings=({},))


def parse_robots(body: bytes) -> Robots:
    """Read a robots.txt, whatever its bytes are."""
    is_cut = len(body) > MOST_BYTES
    text = _decoded(body[:MOST_BYTES])
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if is_cut and _strict(lines[-1])[0] != "disallow":
        # Half of a line may allow more than the whole, but never disallows less.
        lines.pop()
    strict = [_strict(line) for line in lines]
    # An agent that cannot be read is not a line of the RFC's grammar, so by the letter it does not end a group.
    letter = [found if found[0] != "user-agent" or _token(found[1]) else _UNKNOWN for found in strict]
    guessed = [found if found[0] else _lenient(line) for found, line in zip(strict, lines, strict=True)]
    return Robots(readings=(_grouped(letter),) if guessed == letter else (_grouped(letter), _grouped(guessed)))


def normalize(text: str) -> str:
    """Return the form in which patterns and addresses, one character for each byte, are compared (RFC 9309, 2.2.2).

    An octet that has to be escaped is one character above 255, so that no pattern matches a part of an escape.
    """
    return _TO_NORMALIZE.sub(lambda found: _octet(found[0]), text)


@cache
def _octet(found: str) -> str:
    """Return the normal form of an escape or of one of 256 characters."""
    octet = ord(found) if len(found) == 1 else int(found[1:], 16)
    return chr(octet) if chr(octet) in _UNRESERVED else chr(_ESCAPED + octet)


def _matches(address: str, parts: list[str], *, is_ending: bool) -> bool:
    """Whether an address that begins with the first part goes on with the others, with anything in between.

    Each is searched from where the one before ended, and never again further on, so the time is linear.
    """
    if len(parts) == 1:
        return not is_ending or len(address) == len(parts[0])
    place = len(parts[0])
    for part in parts[1:-1] if is_ending else parts[1:]:
        place = address.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return not is_ending or (address.endswith(parts[-1]) and len(address) - len(parts[-1]) >= place)


def _decoded(body: bytes) -> str:
    """Return one character for each byte of the file in UTF-8."""
    for mark, charset in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if body.startswith(mark):
            body = body[2:].decode(charset, "replace").encode(errors="replace")
    return body.removeprefix(b"\xef\xbb\xbf").decode("latin-1")


def _strict(line: str) -> tuple[str, str]:
    """Return name and value of a line as the RFC writes it; an empty name for any other line."""
    if "#" in line:
        line = line[: line.index("#")]
    name, colon, value = line.partition(":")
    known = _known_name(name) if colon else ""
    return (known, value.strip(_BLANKS)) if known else _UNKNOWN


# A file of 30,000 lines has few names.
@lru_cache(maxsize=100)
def _known_name(written: str) -> str:
    name = written.strip(_BLANKS).lower()
    return name if name in _NAMES else ""


def _lenient(line: str) -> tuple[str, str]:
    """Return name and value of a line that the RFC ignores, as its author may have meant it."""
    text = line.partition("#")[0].strip(_BLANKS)
    if not text:
        return _UNKNOWN
    name, colon, value = text.partition(":")
    if not colon:
        words = text.split()
        if len(words) != 2:  # noqa: PLR2004 - a name and a value
            return _UNKNOWN
        name, value = words
    name, value = name.strip(_BLANKS).lower(), value.strip(_BLANKS)
    for written, meant in (*((name, name) for name in _NAMES), *_MISSPELLED.items()):
        if name.startswith(written):
            return meant, value
    return _UNKNOWN


def _grouped(lines: Iterable[tuple[str, str]]) -> dict[str, _Group]:
    """Return agent -> group. Consecutive user-agent lines share what follows; unknown lines in between do not count."""
    groups: dict[str, _Group] = {}
    current: list[_Group] = []
    has_rules = False
    for number, (name, value) in enumerate(lines, 1):
        if name in {"allow", "disallow"}:
            has_rules = True
            # An empty pattern matches nothing, and neither does the end alone.
            for group in current if value.strip("$") else ():
                group.rules.append((number, name == "allow", value))
        elif name == "user-agent":
            if has_rules:
                current, has_rules = [], False
            if agent := _token(value):
                current.append(groups.setdefault(agent, _Group(agent)))
        elif name == "crawl-delay" and _NUMBER.fullmatch(value):
            for group in current:
                group.slow_down(float(value))
    return groups


def _token(value: str) -> str:
    """Return the product token at the beginning of a value in lower case, or the asterisk; empty if there is none."""
    if value[:1] == EVERYBODY and not value[1:2].strip(_BLANKS):
        return EVERYBODY
    found = _TOKEN.match(value)
    return found[0].lower() if found else ""
