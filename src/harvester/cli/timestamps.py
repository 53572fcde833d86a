"""Moments as they are typed."""

from datetime import UTC, datetime

from harvester.kernel.errors import InvalidInput


def moment(option: str, text: str) -> datetime | None:
    """A day or a moment, in UTC unless it names a zone; nothing typed is None."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{option}: {text[:40]!r} is no moment; write it like 2026-01-31 or 2026-01-31T12:00Z."
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
