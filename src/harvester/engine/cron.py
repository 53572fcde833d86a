"""Cron lines with five fields, always in UTC."""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from harvester.kernel.errors import ConfigError


def next_moment(cron: str, after: datetime) -> datetime:
    """Return the first time of a cron line after another time, in UTC."""
    try:
        return next(CronSim(cron, after.astimezone(UTC)))
    except (CronSimError, StopIteration):
        raise ConfigError(
            f"The cron line {cron!r} cannot be read or is never due; it needs five fields in UTC."
        ) from None
