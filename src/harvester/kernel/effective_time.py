"""The clock by which offers grow old: it stands still while a run is held.

effective now = now - least(frozen + time held so far, max_hold)

It never jumps and never runs faster than real time, so no decision and no deadline makes products vanish at once.
"""

import datetime as dt

#: A hold that nobody decides stops the clock for a week, not for ever.
MAX_HOLD = dt.timedelta(hours=168)
ZERO = dt.timedelta()


def effective_now(
    now: dt.datetime,
    *,
    frozen: dt.timedelta = ZERO,
    held_since: dt.datetime | None = None,
    max_hold: dt.timedelta = MAX_HOLD,
) -> dt.datetime:
    """The moment, in UTC, that expiry is reckoned from.

    Args:
        now: one moment for the whole phase, by the database's clock.
        frozen: time lost to earlier holds that were rejected since the last promotion.
        held_since: when the hold began that is not decided yet.
        max_hold: the most that holds can stop the clock in all.
    """
    if max_hold < ZERO:
        raise ValueError("max_hold cannot be negative")
    return _utc(now) - min(frozen_with_hold(now, frozen=frozen, held_since=held_since), max_hold)


def frozen_with_hold(
    now: dt.datetime, *, frozen: dt.timedelta = ZERO, held_since: dt.datetime | None = None
) -> dt.timedelta:
    """The lost time with the present hold in it: what `frozen` becomes when the held run is rejected now."""
    if frozen < ZERO:
        raise ValueError("frozen cannot be negative")
    if held_since is None:
        return frozen
    # Another clock may have set held_since a moment ahead; time lost never shrinks for that.
    return frozen + max(_utc(now) - _utc(held_since), ZERO)


def expires_at(
    last_seen: dt.datetime,
    expiry: dt.timedelta,
    *,
    frozen: dt.timedelta = ZERO,
    held_since: dt.datetime | None = None,
    max_hold: dt.timedelta = MAX_HOLD,
) -> dt.datetime:
    """The real moment, in UTC, after which what was last seen then is too old, if nothing is promoted or decided."""
    due = _utc(last_seen) + expiry
    expires = due + min(frozen, max_hold)
    if held_since is None or expires < _utc(held_since):
        return expires
    # The hold stops the clock before that, and the clock runs on when the hold has used up all of its time.
    return due + max_hold


def _utc(moment: dt.datetime) -> dt.datetime:
    if moment.tzinfo is None:
        raise ValueError("a moment needs a time zone")
    return moment.astimezone(dt.UTC)
