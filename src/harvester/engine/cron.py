"""Cron lines, five fields, always UTC."""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from harvester.kernel.errors import ConfigError


def next_moment(cron: str, after: datetime) -> datetime:
    """The first moment of a cron line after a time; UTC only."""
    try:
        return next(CronSim(cron, after.astimezone(UTC)))
    except (CronSimError, StopIteration):
        raise ConfigError(
            f"The cron line {cron!r} cannot be read or never comes due; it needs five fields in UTC."
        ) from None
