"""When a sale price holds, as product feeds write it: two moments of ISO 8601 with a slash between them."""

from datetime import UTC, datetime

from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.text import trim


def holds_at(period: str | None, moment: datetime) -> bool:
    """Whether a sale price with this period holds at a moment. Without a period it always holds.

    Moments without an offset are UTC, as the specification of Google's feeds has it.

    Raises:
        Rejected: the period cannot be read, so that nobody knows which of two prices holds.
    """
    text = trim(period)
    if not text:
        return True
    begin, _, end = text.partition("/")
    try:
        return _moment(begin) <= moment <= _moment(end)
    except ValueError:
        raise Rejected(Fault.PERIOD_UNREADABLE) from None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(trim(text))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
