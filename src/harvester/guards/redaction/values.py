"""Removing secrets from values of any kind."""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from harvester.guards.redaction.names import is_secret_name
from harvester.guards.redaction.text import REDACTED, redact_text

#: Deeper data is data gone wrong, or refers to itself.
DEEPEST = 20
TOO_DEEP = "[nested too deeply]"
_PAIR = len(("name", "value"))

#: These cannot carry a secret text, and cannot misbehave when they are printed.
_PLAIN = frozenset({type(None), bool, int, float, Decimal, UUID, dt.date, dt.datetime, dt.time, dt.timedelta})


def redact(value: Any) -> Any:
    """Copy a value without what is secret in it. Never raises.

    Texts, and bytes, lose the secrets inside them. Mappings and lists are copied, and what stands under a
    secret name becomes `[redacted]`; so do the values of named pairs in a list (headers, cookies). An
    exception becomes its class and message, any other object its text.
    """
    return _redact(value, ())


def _redact(value: Any, path: tuple[int, ...], *, in_list: bool = False) -> Any:
    try:
        if in_list and isinstance(value, tuple | list) and len(value) == _PAIR and _names_a_secret(value[0]):
            return _hide_second(value)
        return _redact_by_type(value, path)
    except Exception:  # noqa: BLE001 - an object may raise anything when it is looked at
        return f"[unprintable {type(value).__name__}]"


def _redact_by_type(value: Any, path: tuple[int, ...]) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, str):
        return redact_text(str.__str__(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _redact_bytes(bytes(value))
    if isinstance(value, BaseException):
        return redact_text(f"{type(value).__name__}: {value}")
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return _redact_inside(value, path)
    return redact_text(str(value))


def _redact_bytes(value: bytes) -> bytes:
    return redact_text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _redact_inside(value: Any, path: tuple[int, ...]) -> Any:
    if len(path) >= DEEPEST or id(value) in path:
        return TOO_DEEP
    path = (*path, id(value))
    if isinstance(value, Mapping):
        return _redact_mapping(value, path)
    items = [_redact(item, path, in_list=True) for item in value]
    return tuple(items) if isinstance(value, tuple) else items


def _redact_mapping(value: Mapping[Any, Any], path: tuple[int, ...]) -> dict[Any, Any]:
    cleaned = {}
    has_secret_name = _names_a_secret(value.get("name"))
    for name, item in value.items():
        shown = _redact_key(name)
        is_secret = is_secret_name(shown) or (has_secret_name and shown == "value")
        cleaned[shown] = _hide(item) if is_secret else _redact(item, path)
    return cleaned


def _names_a_secret(name: Any) -> bool:
    """Also a name with a secret in it, which is none any more once that is gone."""
    if not isinstance(name, (str, bytes)):
        return is_secret_name(name)
    return is_secret_name(name) or is_secret_name(_redact_key(name))


def _redact_key(name: Any) -> Any:
    shown = name if isinstance(name, (str, bytes)) or type(name) in _PLAIN else str(name)
    return _redact(shown, ())


def _hide_second(pair: Any) -> Any:
    hidden = [_redact_key(pair[0]), _hide(pair[1])]
    return tuple(hidden) if isinstance(pair, tuple) else hidden


def _hide(value: Any) -> Any:
    """Whether there is a secret at all, and a yes or no about it, may be seen."""
    is_empty = value is None or (isinstance(value, (str, bytes)) and not value)
    return value if is_empty or isinstance(value, bool) else REDACTED
