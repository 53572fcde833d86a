"""Removing secrets from text.

Each step finds what must go and puts `[redacted]` in its place; nothing else of the text changes. All steps
take time in proportion to the text, whoever wrote it: repetitions are possessive or bounded, and what a
search has read it consumes. Text that was redacted passes through unchanged.
"""

import re

from harvester.guards.redaction.live_secrets import LiveSecrets
from harvester.guards.redaction.names import is_secret_name

REDACTED = "[redacted]"
#: Removing one thing may uncover another (a URL inside a value). Two passes settle all but contrived text.
MOST_PASSES = 8

live = LiveSecrets()

# All patterns but that of tokens need one of these. Most texts in logs are single words and end here.
_PHRASE = re.compile(r"[=:%/ \t]")
# The user-info of a URL ends at the last @ in front of the path.
_USER_INFO = re.compile(r'://[^\s/?#"<>\\]*@')
# A raw slash, question mark or hash in a password pushes the @ behind the apparent end of the host. Digits in
# place of the password are a port. The length is bounded because the search may fail at each of many URLs.
_BROKEN_USER_INFO = re.compile(
    r'://(?!\[)[^\s/?#"<>\\@:]*+:(?!\d*+(?:[/?#\s]|\Z))[^\s"<>@]{0,200}@(?:[^\s/?#"<>\\]*@)?'
)
# Whoever knows the path of a webhook may post to it.
_WEBHOOK = re.compile(
    r"""((?:hooks\.slack(?:-gov)?\.com|discord(?:app)?\.com/api/webhooks|\.webhook\.office\.com)/)[^\s"'<>]++""",
    re.IGNORECASE,
)
_KEY_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_KEY_END = re.compile(r"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
# Secrets by their look: JSON web tokens, Harvester's own API keys, and the tokens of Slack, GitHub and Apify.
_TOKEN = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]*+|xox[a-z]-[\w-]{10,}+"
    r"|gh[a-z]_\w{20,}+|github_pat_\w{20,}+|apify_api_\w{20,}+|hvk_[\w-]{20,}+)",
    re.ASCII,
)
_SCHEME = re.compile(r"\b(bearer|basic)([ \t]++)([\w.~+/-]{8,}+=*+)", re.IGNORECASE | re.ASCII)

# A name, the quote or bracket that closes it, and what separates it from its value. Quotes may be escaped
# (JSON inside JSON). `==` compares and `::` is a path.
_NAME = re.compile(
    r"""(?<![\w.-])([\w.-]++)(?:\\*+["']|\]|%5D)?[ \t]*+(=>|:=|=(?!=)|:(?!:)|%3D|%3A)[ \t]*+""",
    re.ASCII | re.IGNORECASE,
)
# No group is repeated possessively, `(...)*+`: Python before 3.11.5 gives the last repetition back, and with it the
# last character of a secret.
_QUOTED = re.compile(r"""[bru]{0,2}(["'])((?:(?!\1)[^\\\n]|\\.)*)""", re.DOTALL | re.IGNORECASE)
_ESCAPED_QUOTED = re.compile(r"""(\\++["'])((?:(?!(?<!\\)\1)[^\n])*)""")
# Unquoted values end at white space, at what ends a value in a URL or in markup, and at the next pair. A
# quote directly behind a bracket, as in SecretStr('...'), belongs to the value.
_UNQUOTED = re.compile(
    r"""(?:[^\s&"'<>,;%]|[,;](?!\s?[a-z_][\w.-]{0,63}=)|%(?!26)|(?<=[(\[{,=:])(?:"[^"\n]*+"|'[^'\n]*+'))*""",
    re.ASCII | re.IGNORECASE,
)
# An apostrophe may open a string or be one: the search for its end is bounded.
_BRACKET = re.compile(r"""[\[({]|[\])}]|"(?:[^"\\]++|\\.)*"?|'(?:[^'\\\n]|\\.){0,200}'""", re.DOTALL)
_DEPTH = {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}
# Headers and pass phrases have spaces in them: theirs is the rest of the line, up to the quote around it.
_LINE = re.compile(r"""(?:="[^"\n]*+"|[^\n"'])*""")
_WHOLE_LINE_NAMES = ("authorization", "cookie", "passphrase")
# What stands behind a name in messages, forms and type hints and is no value.
_NO_VALUES = frozenset({
    "none", "null", "nil", "true", "false", "str", "bytes", "int", "bool", "any",
    "required", "missing", "invalid", "expired", "empty", "unset",
})  # fmt: skip


def redact_text(text: str) -> str:
    """Remove what is secret from a text."""
    for _ in range(MOST_PASSES):
        before, text = text, _remove_once(text)
        if text == before:
            break
    return text


def _remove_once(text: str) -> str:
    text = _remove_live(text)
    if not _PHRASE.search(text):
        return _TOKEN.sub(REDACTED, text)
    text = _remove_private_keys(text)
    text = _USER_INFO.sub(f"://{REDACTED}@", text)
    text = _BROKEN_USER_INFO.sub(f"://{REDACTED}@", text)
    text = _WEBHOOK.sub(rf"\1{REDACTED}", text)
    text = _remove_named_values(text)
    text = _TOKEN.sub(REDACTED, text)
    return _SCHEME.sub(_remove_credentials, text)


def _remove_live(text: str) -> str:
    found = [form for form in live.forms() if form in text]
    if not found:
        return text
    # What is already redacted stays as it is, even where a secret is a part of that very word.
    return REDACTED.join(_cut(part, found) for part in text.split(REDACTED))


def _cut(text: str, forms: list[str]) -> str:
    """Cut out all forms. They may overlap: what any of them covers goes."""
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
        # A key that was cut off hides everything behind it.
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
    """Where the value begins and ends that belongs to a name."""
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
    """The end of a list or an object that begins here; where none begins, here."""
    if text[begin : begin + 1] not in ("[", "(", "{"):
        return begin
    depth = 0
    for found in _BRACKET.finditer(text, begin):
        depth += _DEPTH.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)


def _remove_credentials(match: re.Match[str]) -> str:
    """Prose says "basic authentication": only what looks like a token is one."""
    token = match[3]
    has_digit = any(character.isdigit() for character in token)
    has_mixed_case = token[1:] != token[1:].lower() and token != token.upper()
    return f"{match[1]}{match[2]}{REDACTED}" if has_digit or has_mixed_case else match[0]
