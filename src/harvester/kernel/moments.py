"""Times that people and applications write."""

from datetime import UTC, datetime


def parse_moment(text: str) -> datetime:
    """Return a time written in ISO 8601, in UTC; without a zone it is UTC.

    Raises:
        ValueError: it is not a time, or it does not exist in UTC.
    """
    return in_utc(datetime.fromisoformat(text))


def in_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC, because databases do not take every offset that ISO 8601 allows.

    Raises:
        ValueError: it lies before the first or after the last day that there is in UTC.
    """
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time does not exist in UTC") from None
