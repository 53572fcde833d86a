"""Rate limits, counted for all processes together.

Stored in Redis if `HARVESTER_REDIS_URL` is set, otherwise in PostgreSQL; never in both, and never in one process.
Nothing here waits: a refusal says when to come back.
"""

import math
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from harvester.guards import redis_client
from harvester.guards.prepared import prepared_cursor
from harvester.kernel.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    """A rate and a burst.

    Attributes:
        count: how many are allowed ...
        seconds: ... in this time.
        burst: how many of them may come at once after a pause.
    """

    count: int
    seconds: float
    burst: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or self.seconds <= 0 or self.burst < 1:
            raise ValueError("count, seconds and burst of a limit must be above zero")

    @property
    def interval(self) -> float:
        """Seconds between two at an even rate."""
        return self.seconds / self.count


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The answer to a request for one.

    Attributes:
        granted: whether it is allowed now; only then it was counted.
        wait: seconds until the next one would be granted.
        left: how many more would be granted at once.
    """

    granted: bool
    wait: float
    left: int


# The row lock serializes all requests for the same name; it ends with the statement, unless the caller has an open
# transaction.
_TAKE = """
INSERT INTO rate_limits AS r (name, due) VALUES (%(name)s, clock_timestamp() + %(interval)s * interval '1 second')
ON CONFLICT (name) DO UPDATE
    SET due = greatest(r.due, clock_timestamp()) + %(interval)s * interval '1 second'
    WHERE r.due <= clock_timestamp() + %(ahead)s * interval '1 second'
      AND (r.not_before IS NULL OR r.not_before <= clock_timestamp())
RETURNING extract(epoch FROM due - clock_timestamp())
"""
# The same, and the store counts as fully used at its beginning. The table is not logged: after a crash of the server or
# of a single session it is empty, and so is its copy on a replica that takes over. The row with the empty name shows
# since when it has not been emptied; without this row, that is now.
_TAKE_STRICTLY = """
WITH emptied AS (
    INSERT INTO rate_limits (name, due) VALUES ('', clock_timestamp()) ON CONFLICT (name) DO NOTHING RETURNING due
), beginning AS (
    SELECT coalesce((SELECT due FROM emptied), (SELECT due FROM rate_limits WHERE name = ''), clock_timestamp())
           + (%(interval)s + %(ahead)s) * interval '1 second' AS due
)
INSERT INTO rate_limits AS r (name, due)
SELECT %(name)s, greatest(due, clock_timestamp()) + %(interval)s * interval '1 second' FROM beginning
WHERE due <= clock_timestamp() + %(ahead)s * interval '1 second'
ON CONFLICT (name) DO UPDATE
    SET due = greatest(r.due, clock_timestamp(), excluded.due - %(interval)s * interval '1 second')
              + %(interval)s * interval '1 second'
    WHERE r.due <= clock_timestamp() + %(ahead)s * interval '1 second'
      AND (r.not_before IS NULL OR r.not_before <= clock_timestamp())
RETURNING extract(epoch FROM due - clock_timestamp())
"""
# How far a name is used up, and for how long it is postponed.
_LOOK = """
SELECT extract(epoch FROM max(due) FILTER (WHERE name = %(name)s) - clock_timestamp()),
       extract(epoch FROM greatest(
           max(not_before) FILTER (WHERE name = %(name)s),
           CASE WHEN %(strict)s THEN max(due) FILTER (WHERE name = '') + %(interval)s * interval '1 second' END)
           - clock_timestamp())
FROM rate_limits WHERE name IN (%(name)s, '')
"""
_POSTPONE = """
INSERT INTO rate_limits AS r (name, due, not_before)
VALUES (%(name)s, clock_timestamp(), clock_timestamp() + %(seconds)s * interval '1 second')
ON CONFLICT (name) DO UPDATE SET not_before =
    CASE WHEN %(shorten)s THEN excluded.not_before ELSE greatest(r.not_before, excluded.not_before) END
"""
_FORGET = """
DELETE FROM rate_limits
WHERE name <> '' AND greatest(due, not_before) < clock_timestamp() - interval '1 day'
"""
# The same by Redis' own clock, in microseconds: whether it is granted, how far ahead of the clock the grants are, and
# for how long the name is postponed. The third key has the run id of the server and when it was first seen: a restarted
# server has another one, and an emptied one has none. It may have loaded an old copy of its data.
_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, ahead = tonumber(ARGV[1]), tonumber(ARGV[2])
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local postponed = math.max(redis.call('PTTL', KEYS[2]), 0) * 1000
if ARGV[3] == '1' then
    local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
    local seen = redis.call('HMGET', KEYS[3], 'run', 'since')
    if seen[1] ~= run then
        seen[2] = string.format('%.0f', now)
        redis.call('HSET', KEYS[3], 'run', run, 'since', seen[2])
    end
    due = math.max(due, tonumber(seen[2]) + interval + ahead)
end
if due - now > ahead or postponed > 0 then return {0, due - now, postponed} end
due = due + interval
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000) + 1000)
return {1, due - now, 0}
"""
_POSTPONE_SCRIPT = """
if ARGV[2] == '1' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
    if tonumber(ARGV[1]) > 0 then redis.call('SET', KEYS[1], '1', 'PX', ARGV[1]) else redis.call('DEL', KEYS[1]) end
end
return {}
"""
_MICROSECONDS = 1_000_000
#: A longer postponement was given in the wrong unit.
LONGEST_POSTPONEMENT_SECONDS = 366 * 24 * 60 * 60


def take(name: str, limit: RateLimit, *, strict: bool = False) -> Grant:
    """Ask for one. Names have the form `what:whose`, such as `api:<id of a key>`.

    Args:
        name: what is limited.
        limit: how much of it.
        strict: a restart of the store must not grant more than the rate allows. If the store has lost its data, the
            first grant waits for one interval. Refused inside a transaction, which would hold up everybody else who
            asks for this name until it ends.

    Raises:
        TransientError: Redis stores the limits and does not respond; nothing was granted.
    """
    if strict:
        _refuse_transaction()
    ahead = limit.interval * (limit.burst - 1)
    if url := settings.CONFIG.redis_url:
        arguments = [round(limit.interval * _MICROSECONDS), round(ahead * _MICROSECONDS), int(strict)]
        keys = [f"harvester:limit:{name}", f"harvester:postponed:{name}", "harvester:limits-since"]
        granted, *microseconds = redis_client.run_script(url, _SCRIPT, keys, arguments)
        used, postponed = (int(number) / _MICROSECONDS for number in microseconds)
    else:
        granted, used, postponed = _take_in_database(name, limit.interval, ahead, strict=strict)
    left = max(int((ahead - used) / limit.interval + 1), 0) if postponed <= 0 else 0
    return Grant(granted=bool(granted), wait=max(used - ahead, postponed, 0.0), left=left)


def postpone(name: str, seconds: float, *, shorten: bool = False) -> None:
    """Grant nothing under this name before so many seconds from now.

    A shorter postponement does not end a longer one, unless with `shorten`. It is lost with the store; a job's lane
    keeps a rest through that. Refused inside a transaction.

    Raises:
        TransientError: Redis stores the limits and does not respond; nothing was changed.
    """
    if not 0 <= seconds <= LONGEST_POSTPONEMENT_SECONDS:
        raise InvalidInput(f"A limit can be postponed by 0 to {LONGEST_POSTPONEMENT_SECONDS} s, not {seconds!r}.")
    _refuse_transaction()
    if url := settings.CONFIG.redis_url:
        arguments = [math.ceil(seconds * 1000), int(shorten)]
        redis_client.run_script(url, _POSTPONE_SCRIPT, [f"harvester:postponed:{name}"], arguments)
        return
    with connection.cursor() as cursor:
        cursor.execute(_POSTPONE, {"name": name, "seconds": seconds, "shorten": shorten})


def forget_idle() -> int:
    """Delete limits that were not used for a day; a new row would grant the same."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)
        return int(cursor.rowcount)


def _refuse_transaction() -> None:
    if connection.in_atomic_block:
        raise RuntimeError("A pace is asked for outside of transactions: its row would stay locked until the end.")


def _take_in_database(name: str, interval: float, ahead: float, *, strict: bool) -> tuple[bool, float, float]:
    """Return whether it is granted, how far ahead of the clock the grants are, and for how long it is postponed."""
    values: dict[str, Any] = {"name": name, "interval": interval, "ahead": ahead, "strict": strict}
    with prepared_cursor() as cursor:
        cursor.execute(_TAKE_STRICTLY if strict else _TAKE, values)
        taken = cursor.fetchone()
        if taken is not None:
            return True, float(taken[0]), 0.0
        cursor.execute(_LOOK, values)
        used, postponed = cursor.fetchone()
        return False, float(used or 0), float(postponed or 0)
