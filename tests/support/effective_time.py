"""A model of the clock by which offers expire, to compare with the functions of the database.

The clock stops while a run is held:

effective now = now - least(frozen + time held so far, max_hold)

It never jumps and never runs faster than real time, so no decision or deadline makes many products disappear at once.
"""

import datetime as dt

#: A hold that nobody decides stops the clock for a week, not forever.
MAX_HOLD = dt.timedelta(hours=168)
ZERO = dt.timedelta()


def effective_now(
    now: dt.datetime,
    *,
    frozen: dt.timedelta = ZERO,
    held_since: dt.datetime | None = None,
    max_hold: dt.timedelta = MAX_HOLD,
) -> dt.datetime:
    """Return the time, in UTC, that expiry is computed from.

    Args:
        now: one time for the whole phase, by the database's clock.
        frozen: duration of earlier holds that were rejected since the last promotion.
        held_since: when the current hold began.
        max_hold: the longest that all holds together can stop the clock.
    """
    if max_hold < ZERO:
        raise ValueError("max_hold cannot be negative")
    return _utc(now) - min(frozen_with_hold(now, frozen=frozen, held_since=held_since), max_hold)


def frozen_with_hold(
    now: dt.datetime, *, frozen: dt.timedelta = ZERO, held_since: dt.datetime | None = None
) -> dt.timedelta:
    """Return `frozen` plus the current hold: its new value if the held run is rejected now."""
    if frozen < ZERO:
        raise ValueError("frozen cannot be negative")
    if held_since is None:
        return frozen
    # Another clock may have set held_since slightly in the future; frozen time never shrinks.
    return frozen + max(_utc(now) - _utc(held_since), ZERO)


def expires_at(
    last_seen: dt.datetime,
    expiry: dt.timedelta,
    *,
    frozen: dt.timedelta = ZERO,
    held_since: dt.datetime | None = None,
    max_hold: dt.timedelta = MAX_HOLD,
) -> dt.datetime:
    """Return the real time, in UTC, at which an offer expires if nothing is promoted or decided before."""
    due = _utc(last_seen) + expiry
    expires = due + min(frozen, max_hold)
    if held_since is None or expires < _utc(held_since):
        return expires
    # The hold stops the clock before that, and the clock continues once the hold has used up its time.
    return due + max_hold


def _utc(moment: dt.datetime) -> dt.datetime:
    if moment.tzinfo is None:
        raise ValueError("a time needs a time zone")
    return moment.astimezone(dt.UTC)
