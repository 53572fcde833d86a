"""Remove secrets from everything that leaves the process as text: logs, errors of jobs, audit rows, pages.

Three things are hidden, wherever they come from: values under a secret name, text that looks like a secret, and the
values of recently opened credentials (`remember`).

Each step finds what must be hidden and replaces it with `[redacted]`; the rest of the text is unchanged. All steps
take linear time for any text: repetitions are possessive or bounded, and no search reads the same text twice. Redacted
text passes through unchanged.
"""

import base64
import datetime as dt
import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import UUID

REDACTED = "[redacted]"
#: Removing one thing may uncover another (a URL inside a value). Two passes settle all but contrived text.
MOST_PASSES = 8

# All patterns but that of tokens need one of these. Most texts in logs are single words and end here.
_PHRASE = re.compile(r"[=:%/ \t]")
# The user info of a URL ends at the last @ before the path.
_USER_INFO = re.compile(r'://[^\s/?#"<>\\]*@')
# A raw slash, question mark or hash in a password pushes the @ behind the apparent end of the host. Digits in
# place of the password are a port. The length is bounded because the search may fail at each of many URLs.
_BROKEN_USER_INFO = re.compile(
    r'://(?!\[)[^\s/?#"<>\\@:]*+:(?!\d*+(?:[/?#\s]|\Z))[^\s"<>@]{0,200}@(?:[^\s/?#"<>\\]*@)?'
)
# Anyone who knows the path of a webhook may post to it.
_WEBHOOK = re.compile(
    r"""((?:hooks\.slack(?:-gov)?\.com|discord(?:app)?\.com/api/webhooks|\.webhook\.office\.com)/)[^\s"'<>]++""",
    re.IGNORECASE,
)
_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
# Recognizable secrets: JSON web tokens, Harvester's own API keys, and the tokens of Slack, GitHub and Apify.
_TOKEN = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+|xox[a-z]-[\w-]{10,}+"
    r"|gh[a-z]_\w{20,}+|github_pat_\w{20,}+|apify_api_\w{20,}+|hvk_[\w-]{20,}+)",
    re.ASCII,
)
_SCHEME = re.compile(r"\b(bearer|basic)([ \t]++)([\w.~+/-]{8,}+=*+)", re.IGNORECASE | re.ASCII)

# A name, the quote or bracket that closes it, and the separator before its value. Quotes may be escaped
# (JSON inside JSON). `==` compares and `::` is a path.
_NAME = re.compile(
    r"""(?<![\w.-])([\w.-]++)(?:\\*+["']|\]|%5D)?[ \t]*+(=>|:=|=(?!=)|:(?!:)|%3D|%3A)[ \t]*+""",
    re.ASCII | re.IGNORECASE,
)
# No group is repeated possessively, `(...)*+`: Python before 3.11.5 gives back the last repetition, and with it the
# last character of a secret.
_QUOTED = re.compile(r"""[bru]{0,2}(["'])((?:(?!\1)[^\\\n]|\\.)*)""", re.DOTALL | re.IGNORECASE)
_ESCAPED_QUOTED = re.compile(r"""(\\++["'])((?:(?!(?<!\\)\1)[^\n])*)""")
# Unquoted values end at white space, at the end of a value in a URL or in markup, and at the next pair. A quote
# directly after a bracket, as in SecretStr('...'), belongs to the value.
_UNQUOTED = re.compile(
    r"""(?:[^\s&"'<>,;%]|[,;](?!\s?[a-z_][\w.-]{0,63}=)|%(?!26)|(?<=[(\[{,=:])(?:"[^"\n]*+"|'[^'\n]*+'))*""",
    re.ASCII | re.IGNORECASE,
)
# An apostrophe may open a string or not: the search for its end is bounded.
_BRACKET = re.compile(r"""[\[({]|[\])}]|"(?:[^"\\]++|\\.)*"?|'(?:[^'\\\n]|\\.){0,200}'""", re.DOTALL)
_DEPTH = {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}
# Headers and passphrases contain spaces: their value is the rest of the line, up to the quote around it.
_LINE = re.compile(r"""(?:="[^"\n]*+"|[^\n"'])*""")
_WHOLE_LINE_NAMES = ("authorization", "cookie", "passphrase")
# Words after a name in messages, forms and type hints that are not values.
_NO_VALUES = frozenset({
    "none", "null", "nil", "true", "false", "str", "bytes", "int", "bool", "any",
    "required", "missing", "invalid", "expired", "empty", "unset",
})  # fmt: skip

# Names are compared without case, dashes, underscores and dots. A name is secret if it is one of `EXACT`, or if it
# contains one of `STEMS` and does not end in a word that makes it a statement *about* a secret (`token_count`,
# `secret_version`, `password_changed_at`). In doubt a name is secret: a hidden number costs less than a visible
# password.

#: Secret anywhere in a name.
STEMS = (
    "accesskey", "apikey", "authorization", "ciphertext", "cookie", "credential", "encryptionkey", "jwt",
    "passphrase", "passwd", "password", "plaintext", "privatekey", "secret", "signature", "signingkey",
    "token", "webhookurl",
)  # fmt: skip

#: Secret only as the whole name: inside longer names they mean something else (author, session_count).
EXACT = frozenset({
    "auth", "authtag", "basicauth", "dbpass", "ftppass", "iv", "nonce", "otp", "proxyauth", "pwd", "session",
    "sessiondata", "sessionid", "sessionkey", "sharedkey", "sig", "smtppass", "sshkey", "userpass", "xauth",
})  # fmt: skip

#: Words after a stem that make the name harmless. They count with and without a separator.
ABOUT = (
    "bytes", "changed", "count", "error", "exception", "expired", "expires", "expiry", "fields", "invalid",
    "kind", "length", "limit", "missing", "name", "names", "policy", "required", "size", "status", "type",
    "used", "version", "warning",
)  # fmt: skip

#: The same, but too short to be recognized without a separator.
ABOUT_WORDS = frozenset({"age", "at", "by", "id", "ids", "in", "py", "ttl"})

_SEPARATORS = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Numbers and encodings at the end (password1, KEY_B64) do not change the meaning of a name.
_ENDING = re.compile(r"(?:b64|base64|hex|\d)+\Z")
#: Longer text is not a name.
_LONGEST = 200

#: Shorter values would be removed from ordinary words too, and the gaps would reveal the value.
SHORTEST = 4
#: As long as the longest wait between two attempts of a job.
KEEP_SECONDS = 24 * 60 * 60
#: More than one process uses at once; the oldest are dropped, so that each line stays cheap to check.
MOST_LIVE = 1000

#: Deeper data is broken or refers to itself.
DEEPEST = 20
TOO_DEEP = "[nested too deeply]"
_PAIR = len(("name", "value"))

#: These types cannot contain a secret text, and are safe to print.
_PLAIN = frozenset({type(None), bool, int, float, Decimal, UUID, dt.date, dt.datetime, dt.time, dt.timedelta})


def is_secret_name(name: object) -> bool:
    """Whether a value under this name must be hidden."""
    if isinstance(name, bytes):
        name = name[: _LONGEST + 1].decode("latin-1")
    return isinstance(name, str) and len(name) <= _LONGEST and _is_secret(str.__str__(name))


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = [word for word in _SEPARATORS.split(_HUMP.sub("_", name).lower()) if word]
    joined = "".join(words)
    bare = _ENDING.sub("", joined) or joined
    if joined in EXACT or bare in EXACT:
        return True
    if not any(stem in joined for stem in STEMS):
        return False
    return not (words[-1] in ABOUT_WORDS or joined.endswith(ABOUT))


class LiveSecrets:
    """Secrets in use, which are removed from any text. Threads may share it.

    Each value expires: nobody knows when the last error that quotes a password is logged, and a list that only grew
    would make every log line slower.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        #: When each value expires, and its spellings; the newest are last.
        self._kept: dict[str, tuple[float, frozenset[str]]] = {}
        #: When to refresh, and all spellings until then. Replaced as a whole, because readers take no lock.
        self._current: tuple[float, tuple[str, ...]] = (math.inf, ())

    def remember(self, secret: str, *, seconds: float = KEEP_SECONDS) -> None:
        """Remove this value from all text for some time, even if it is quoted or encoded."""
        if len(secret) < SHORTEST:
            return
        with self._lock:
            self._kept.pop(secret, None)
            self._kept[secret] = (self._clock() + seconds, spellings(secret))
            self._refresh()

    def forget(self, secret: str) -> None:
        """Stop removing this value."""
        with self._lock:
            self._kept.pop(secret, None)
            self._refresh()

    def forget_all(self) -> None:
        """Stop removing all values."""
        with self._lock:
            self._kept.clear()
            self._refresh()

    def forms(self) -> tuple[str, ...]:
        """Return all spellings of all values."""
        until, forms = self._current
        if self._clock() < until:
            return forms
        with self._lock:
            self._refresh()
            return self._current[1]

    def _refresh(self) -> None:
        now = self._clock()
        kept = [(secret, entry) for secret, entry in self._kept.items() if entry[0] > now]
        self._kept = dict(kept[-MOST_LIVE:])
        until = min((end for end, _ in self._kept.values()), default=math.inf)
        self._current = (until, tuple(frozenset().union(*(forms for _, forms in self._kept.values()))))


def spellings(secret: str) -> frozenset[str]:
    """Return the value itself, and as it appears in URLs, JSON, Python's repr and base64."""
    raw = secret.encode("utf-8", errors="surrogatepass")
    encoded = (base64.b64encode(raw), base64.urlsafe_b64encode(raw))
    return frozenset(
        {
            secret,
            quote(raw),
            quote(raw, safe=""),
            quote_plus(raw),
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            repr(secret)[1:-1],
            # Inside a longer text with both kinds of quotes, repr escapes one of them.
            repr("'\"" + secret)[4:-1],
            repr(raw)[2:-1],
            *(form.decode().rstrip("=") for form in encoded),
        }
    )


live = LiveSecrets()
remember = live.remember
forget = live.forget
forget_all = live.forget_all


def redact_text(text: str) -> str:
    """Return a text without its secrets."""
    for _ in range(MOST_PASSES):
        before, text = text, _remove_once(text)
        if text == before:
            break
    return text


def _remove_once(text: str) -> str:
    if found := [form for form in live.forms() if form in text]:
        # Redacted parts stay unchanged, even if a secret is a part of that very word.
        text = REDACTED.join(_cut(part, found) for part in text.split(REDACTED))
    if not _PHRASE.search(text):
        return _TOKEN.sub(REDACTED, text)
    text = _remove_private_keys(text)
    text = _USER_INFO.sub(f"://{REDACTED}@", text)
    text = _BROKEN_USER_INFO.sub(f"://{REDACTED}@", text)
    text = _WEBHOOK.sub(rf"\1{REDACTED}", text)
    text = _remove_named_values(text)
    text = _TOKEN.sub(REDACTED, text)
    return _SCHEME.sub(_remove_credentials, text)


def _cut(text: str, forms: list[str]) -> str:
    """Remove everything that any of the forms covers; they may overlap."""
    spans = sorted(match.span() for form in forms for match in re.finditer(re.escape(form), text))
    parts, position = [], 0
    for start, end in spans:
        if start >= position:
            parts += [text[position:start], REDACTED]
        position = max(position, end)
    return "".join([*parts, text[position:]])


def _remove_private_keys(text: str) -> str:
    parts, position = [], 0
    while begin := _KEY_BEGIN.search(text, position):
        parts += [text[position : begin.start()], REDACTED]
        end = _KEY_END.search(text, begin.end())
        # After a truncated key, all of the remaining text is removed.
        position = end.end() if end else len(text)
    return "".join([*parts, text[position:]])


def _remove_named_values(text: str) -> str:
    parts, position, start = [], 0, 0
    while name := _NAME.search(text, start):
        start = name.end()
        if is_secret_name(name[1]):
            begin, end = _value(text, name)
            if begin < end and text[begin : min(end, begin + 9)].lower() not in _NO_VALUES:
                parts += [text[position:begin], REDACTED]
                position = end
            start = max(start, end)
    return "".join([*parts, text[position:]])


def _value(text: str, name: re.Match[str]) -> tuple[int, int]:
    """Return where the value of a name begins and ends."""
    begin = name.end()
    quoted = _ESCAPED_QUOTED.match(text, begin) or _QUOTED.match(text, begin)
    if quoted:
        return quoted.span(2)
    if name[2] == ":" and name[1].lower().endswith(_WHOLE_LINE_NAMES):
        return begin, begin + len(_matched(_LINE, text, begin).rstrip())
    end = begin if text.startswith(REDACTED, begin) else _bracket_end(text, begin)
    return begin, end + len(_matched(_UNQUOTED, text, end).rstrip(",;)}"))


def _matched(pattern: re.Pattern[str], text: str, begin: int) -> str:
    match = pattern.match(text, begin)
    return match[0] if match else ""


def _bracket_end(text: str, begin: int) -> int:
    """Return the end of a list or an object that begins here; if none does, this position."""
    if text[begin : begin + 1] not in ("[", "(", "{"):
        return begin
    depth = 0
    for found in _BRACKET.finditer(text, begin):
        depth += _DEPTH.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)


def _remove_credentials(match: re.Match[str]) -> str:
    """Replace only text that looks like a token: "basic authentication" is prose."""
    token = match[3]
    has_digit = any(character.isdigit() for character in token)
    has_mixed_case = token[1:] != token[1:].lower() and token != token.upper()
    return f"{match[1]}{match[2]}{REDACTED}" if has_digit or has_mixed_case else match[0]


def redact(value: Any) -> Any:
    """Return a copy of a value without its secrets. Never raises.

    Secrets are removed from texts and bytes. Mappings and lists are copied, and values under a secret name become
    `[redacted]`; so do the values of named pairs in a list (headers, cookies). An exception becomes its class and
    message, any other object its text.
    """
    return _redact(value, ())


def _redact(value: Any, path: tuple[int, ...], *, in_list: bool = False) -> Any:
    try:
        if in_list and isinstance(value, tuple | list) and len(value) == _PAIR and _names_a_secret(value[0]):
            hidden = [_redact_key(value[0]), _hide(value[1])]
            return tuple(hidden) if isinstance(value, tuple) else hidden
        return _redact_by_type(value, path)
    except Exception:  # noqa: BLE001 - an object may raise anything when it is inspected
        return f"[unprintable {type(value).__name__}]"


def _redact_by_type(value: Any, path: tuple[int, ...]) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return redact_text(str.__str__(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        text = bytes(value).decode("utf-8", "surrogateescape")
        return redact_text(text).encode("utf-8", "surrogateescape")
    if isinstance(value, BaseException):
        return redact_text(f"{type(value).__name__}: {value}")
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return _redact_inside(value, path)
    return redact_text(str(value))


def _redact_inside(value: Any, path: tuple[int, ...]) -> Any:
    if len(path) >= DEEPEST or id(value) in path:
        return TOO_DEEP
    path = (*path, id(value))
    if not isinstance(value, Mapping):
        items = [_redact(item, path, in_list=True) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    cleaned = {}
    has_secret_name = _names_a_secret(value.get("name"))
    for name, item in value.items():
        shown = _redact_key(name)
        is_secret = is_secret_name(shown) or (has_secret_name and shown == "value")
        cleaned[shown] = _hide(item) if is_secret else _redact(item, path)
    return cleaned


def _names_a_secret(name: Any) -> bool:
    """Whether a name is secret before or after secrets are removed from it."""
    if not isinstance(name, (str, bytes)):
        return is_secret_name(name)
    return is_secret_name(name) or is_secret_name(_redact_key(name))


def _redact_key(name: Any) -> Any:
    shown = name if isinstance(name, (str, bytes)) or type(name) in _PLAIN else str(name)
    return _redact(shown, ())


def _hide(value: Any) -> Any:
    """Hide a secret; empty values and booleans stay visible."""
    is_empty = value is None or (isinstance(value, (str, bytes)) and not value)
    return value if is_empty or isinstance(value, bool) else REDACTED
