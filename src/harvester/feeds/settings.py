"""Validation of feed settings as people enter them. Errors name the field, the problem and the allowed values."""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import Any, Final, NamedTuple

from django.conf import settings

from harvester.feeds.gates import Thresholds
from harvester.feeds.networks import networks
from harvester.feeds.states import SCHEDULES, Compression, Transport
from harvester.guards.ftp import VARIABLE as PLAIN_FTP_VARIABLE
from harvester.guards.hosts import InvalidHost, read_host
from harvester.kernel.config import HIGHEST_PORT
from harvester.kernel.currencies import MINOR_UNITS
from harvester.kernel.errors import InvalidInput
from harvester.kernel.stock import UnknownStock
from harvester.kernel.text import CONTROLS, is_encodable, trim

LONGEST_PATH, LONGEST_USERNAME = 1000, 200
SHORTEST_EXPIRY_HOURS, LONGEST_EXPIRY_HOURS = 1, 168
#: Far beyond any catalog; a larger value was entered in the wrong unit. Larger files could not be read, because lines
#: are counted in 32 bits.
MOST_FILE_BYTES, MOST_ROWS = 4 * 1024**3, 100_000_000
_WORDS_FOR_NONE = frozenset({"", "none", "null", "default", "manual"})
_WHOLE = re.compile("[+-]?[0-9]{1,18}")
_CONTROL = re.compile(CONTROLS)
#: More would mean all parameters.
MOST_KEPT_PARAMETERS = 50
_PARAMETER = re.compile(r"[A-Za-z0-9_.:\[\]()$*@|~-]{1,100}")
_TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
#: Name that partners use -> encoding. Windows-1252 includes ISO 8859-1.
ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "cp1252": "cp1252",
    "windows-1252": "cp1252",
    "latin-1": "cp1252",
    "latin1": "cp1252",
    "iso-8859-1": "cp1252",
    "utf-16-le": "utf-16-le",
    "utf-16-be": "utf-16-be",
}
#: Threshold -> default. Whether addresses may be identities is a separate setting.
THRESHOLDS: dict[str, float | int] = {
    name: default for name, default in asdict(Thresholds()).items() if name != "accepts_url_identity"
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


_NO_NETWORK = "network is missing; it must be the affiliate network of the file."


def read_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as they are stored; text is trimmed, and numbers may be given as text.

    Raises:
        InvalidSettings: with all problems, not only the first.
    """
    read: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in given.items():
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(SETTINGS))}."
            problems[name] = f"A feed has no setting {name!r}; {hint}"
            continue
        try:
            read[name] = SETTINGS[name].read(name, value)
        except InvalidInput as problem:
            problems[name] = str(problem)
    if problems:
        raise InvalidSettings(problems)
    return read


def read_new_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a new feed, which needs a network."""
    problems = {} if "network" in given else {"network": _NO_NETWORK}
    try:
        read = read_settings(given)
    except InvalidSettings as wrong:
        problems |= wrong.problems
    if problems:
        raise InvalidSettings(problems)
    return read


def read_expiry_hours(value: Any) -> int:
    """Return the hours after which a product that was not seen is no longer visible."""
    return _whole("expiry_hours", value, SHORTEST_EXPIRY_HOURS, LONGEST_EXPIRY_HOURS)


def _refused(name: str, value: Any, allowed: str) -> InvalidInput:
    return InvalidInput(f"{name} is {_shown(value)}; it must be {allowed}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."  # noqa: PLR2004 - a line of an error


def _text(name: str, value: Any, longest: int) -> str:
    if value is not None and not isinstance(value, str):
        raise _refused(name, value, "a text")
    text = trim(value)
    if _CONTROL.search(text) or not is_encodable(text):
        raise _refused(name, text, "a text of one line without control characters")
    if len(text) > longest:
        raise _refused(name, text, f"a text of at most {longest} characters; this one has {len(text)}")
    return text


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, str) and trim(value).lower() in _WORDS_FOR_NONE)


def _whole(name: str, value: Any, low: int, high: int) -> int:
    text = trim(value) if isinstance(value, str) else value
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else text
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise _refused(name, value, f"a whole number from {low} to {high}")
    return number


def _choice(name: str, value: Any, choices: Mapping[str, str], also: str = "") -> str:
    text = _text(name, value, 100).lower()
    if text not in choices:
        raise _refused(name, value, f"one of {', '.join(dict.fromkeys(choices))}{also}")
    return choices[text]


def _truth(name: str, value: Any) -> bool:
    word = value if isinstance(value, bool) else _TRUTH.get(trim(str(value)).lower())
    if not isinstance(word, bool):
        raise _refused(name, value, "true or false")
    return word


def _schedule(name: str, value: Any) -> int | None:
    if _is_none(value):
        return None
    try:
        hours = _whole(name, value, SCHEDULES[0], SCHEDULES[-1])
    except InvalidInput:
        hours = 0
    if hours not in SCHEDULES:
        allowed = ", ".join(map(str, SCHEDULES))
        raise _refused(name, value, f"one of {allowed} hours, or empty for manual runs only")
    return hours


def _transport(name: str, value: Any) -> str:
    transport = _choice(name, value, {word.lower(): word.value for word in Transport})
    if transport == Transport.FTP and not settings.CONFIG.allow_plain_ftp:
        raise InvalidInput(
            f"{name} is FTP, which is switched off because it sends the password unencrypted; it must be SFTP, unless "
            f"an operator sets {PLAIN_FTP_VARIABLE}=true."
        )
    return transport


def _host(name: str, value: Any) -> str:
    text = _text(name, value, LONGEST_PATH)
    if not text:
        return ""
    try:
        return str(read_host(text))
    except InvalidHost as problem:
        raise InvalidInput(f"{problem}", field=name) from None


def _path(name: str, value: Any) -> str:
    path = _text(name, value, LONGEST_PATH)
    if path.endswith("/"):
        raise _refused(name, path, "the path of one file, such as /feeds/catalog.csv.gz; this one names a directory")
    return path


def _choice_from(kind: type[StrEnum], default: StrEnum) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        return default.value if _is_none(value) else _choice(name, value, {word.lower(): word.value for word in kind})

    return read


def _encoding(name: str, value: Any) -> str:
    if _is_none(value):
        return ""
    return _choice(name, value.replace("_", "-") if isinstance(value, str) else value, ENCODINGS, " or empty to detect")


def _currency(name: str, value: Any) -> str:
    code = _text(name, value, 100).upper()
    if code and code not in MINOR_UNITS:
        raise _refused(name, value, "a currency code of ISO 4217 such as USD or EUR, or empty")
    return code


def _decimal_style(name: str, value: Any) -> str:
    text = _text(name, value, 100)
    if text not in ("", ".", ","):
        raise _refused(name, value, "a point, a comma, or empty; it is the decimal separator of prices")
    return text


def _kept_parameters(name: str, value: Any) -> list[str]:
    """Return unique names in lower case, given as a list or as one text with commas."""
    given = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
        raise _refused(name, value, "names of parameters with commas between them, such as ref, source")
    names = sorted({trim(item).lower() for item in given} - {""})
    if len(names) > MOST_KEPT_PARAMETERS or not all(_PARAMETER.fullmatch(item) for item in names):
        allowed = f"at most {MOST_KEPT_PARAMETERS} names of parameters with commas between them, such as ref, source"
        raise _refused(name, value, allowed)
    return names


def _limit(high: int) -> Callable[[str, Any], int | None]:
    def read(name: str, value: Any) -> int | None:
        return None if _is_none(value) else _whole(name, value, 1, high)

    return read


def _thresholds(name: str, value: Any) -> dict[str, float | int | None]:
    """Return numbers by name; None restores the default."""
    if not isinstance(value, Mapping):
        raise _refused(name, value, f"numbers by name; the names are {', '.join(THRESHOLDS)}")
    read: dict[str, float | int | None] = {}
    for threshold, given in value.items():
        if threshold not in THRESHOLDS:
            raise InvalidInput(f"There is no threshold {threshold!r}; there are {', '.join(THRESHOLDS)}.")
        read[threshold] = None
        if _is_none(given):
            continue
        full_name = f"{name}.{threshold}"
        try:
            number: Any = type(THRESHOLDS[threshold])(given) if isinstance(given, str) else given
            Thresholds(**{threshold: number})
        except InvalidInput as problem:
            raise InvalidInput(f"{full_name} is {_shown(given)}: {problem}") from None
        except ValueError:
            raise _refused(full_name, given, "a number") from None
        read[threshold] = number
    return read


class Setting(NamedTuple):
    """A setting of a feed.

    Attributes:
        read: its name and what somebody entered -> the value as it is stored, or InvalidInput.
        rereads: whether it leads to another file or to other rows, so that the next run must not skip its file.
    """

    read: Callable[[str, Any], Any]
    rereads: bool = False


#: In the order in which people read them. `expiry_hours` is stored with the source.
SETTINGS: Final = {
    "network": Setting(lambda name, value: _choice(name, value, {known: known for known in networks()}), rereads=True),
    "schedule_hours": Setting(_schedule),
    "expiry_hours": Setting(lambda _, value: read_expiry_hours(value)),
    "transport": Setting(_transport, rereads=True),
    "host": Setting(_host, rereads=True),
    "port": Setting(_limit(HIGHEST_PORT), rereads=True),
    "path": Setting(_path, rereads=True),
    "username": Setting(lambda name, value: _text(name, value, LONGEST_USERNAME), rereads=True),
    "compression": Setting(_choice_from(Compression, Compression.NONE)),
    "encoding": Setting(_encoding, rereads=True),
    "default_currency": Setting(_currency, rereads=True),  # mutant: reread-settings
    "decimal_style": Setting(_decimal_style, rereads=True),
    "unknown_stock": Setting(_choice_from(UnknownStock, UnknownStock.IN_STOCK), rereads=True),
    "kept_parameters": Setting(_kept_parameters, rereads=True),
    "use_manifest": Setting(_truth),
    "max_file_bytes": Setting(_limit(MOST_FILE_BYTES), rereads=True),
    "max_rows": Setting(_limit(MOST_ROWS), rereads=True),
    "max_products": Setting(_limit(MOST_ROWS), rereads=True),
    "thresholds": Setting(_thresholds),
    "accepts_url_identity": Setting(_truth),
    "unchanged_means_seen": Setting(_truth),
}
#: Settings that are columns of feeds.
STORED: Final = tuple(name for name in SETTINGS if name != "expiry_hours")
