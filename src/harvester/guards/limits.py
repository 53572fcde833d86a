"""Rate limits, counted for all processes together.

Stored in Redis if `HARVESTER_REDIS_URL` is set, otherwise in PostgreSQL; never in both, and never in one process.
Nothing here waits: a refusal says when to come back.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from harvester.guards import redis_client


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
RETURNING extract(epoch FROM due - clock_timestamp())
"""
_LOOK = "SELECT extract(epoch FROM due - clock_timestamp()) FROM rate_limits WHERE name = %(name)s"
_FORGET = "DELETE FROM rate_limits WHERE due < clock_timestamp() - interval '1 day'"
# The same by Redis' own clock, in microseconds: whether it is granted, and how far ahead of the clock the grants are.
_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
if due - now > tonumber(ARGV[2]) then return {0, due - now} end
due = due + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000) + 1000)
return {1, due - now}
"""
_MICROSECONDS = 1_000_000


def take(name: str, limit: RateLimit) -> Grant:
    """Ask for one. Names have the form `what:whose`, such as `api:<id of a key>`.

    Raises:
        TransientError: Redis stores the limits and does not respond; nothing was granted.
    """
    ahead = limit.interval * (limit.burst - 1)
    if url := settings.CONFIG.redis_url:
        arguments = [round(limit.interval * _MICROSECONDS), round(ahead * _MICROSECONDS)]
        number, microseconds = redis_client.run_script(url, _SCRIPT, [f"harvester:limit:{name}"], arguments)
        granted, used = bool(number), int(microseconds) / _MICROSECONDS
    else:
        granted, used = _take_in_database(name, limit.interval, ahead)
    left = max(int((ahead - used) / limit.interval + 1), 0)
    return Grant(granted=granted, wait=max(used - ahead, 0.0), left=left)


def forget_idle() -> int:
    """Delete limits that were not used for a day; a new row would grant the same."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)
        return int(cursor.rowcount)


def _take_in_database(name: str, interval: float, ahead: float) -> tuple[bool, float]:
    values: dict[str, Any] = {"name": name, "interval": interval, "ahead": ahead}
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        taken = cursor.fetchone()
        if taken is not None:
            return True, float(taken[0])
        cursor.execute(_LOOK, values)
        used = cursor.fetchone()
        return False, float(used[0]) if used else 0.0
