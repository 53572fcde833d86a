"""How often something may be done, counted for all processes together.

Kept in Redis where `HARVESTER_REDIS_URL` is set, otherwise in PostgreSQL; never in both, and never in one process.
Nothing here waits: whoever is refused is told when to come back.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from harvester.guards import redis_client


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often, on the long run, and how many of them may come at once.

    Attributes:
        count: this many ...
        seconds: ... in this time.
        burst: of which so many may come at once, after a pause.
    """

    count: int
    seconds: float
    burst: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or self.seconds <= 0 or self.burst < 1:
            raise ValueError("a pace needs a count, a time and a burst above zero")

    @property
    def interval(self) -> float:
        """Seconds between two, at the even pace."""
        return self.seconds / self.count


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What came of asking.

    Attributes:
        granted: it may be done now, and was counted. A refusal counts nothing.
        wait: seconds after which the next one would be granted.
        left: how many more would be granted at once.
    """

    granted: bool
    wait: float
    left: int


# The row's lock makes everybody who asks for the same name take turns; it is gone with the statement, unless the caller
# has a transaction open.
_TAKE = """
INSERT INTO rate_limits AS r (name, due) VALUES (%(name)s, clock_timestamp() + %(interval)s * interval '1 second')
ON CONFLICT (name) DO UPDATE
    SET due = greatest(r.due, clock_timestamp()) + %(interval)s * interval '1 second'
    WHERE r.due <= clock_timestamp() + %(ahead)s * interval '1 second'
RETURNING extract(epoch FROM due - clock_timestamp())
"""
_LOOK = "SELECT extract(epoch FROM due - clock_timestamp()) FROM rate_limits WHERE name = %(name)s"
_FORGET = "DELETE FROM rate_limits WHERE due < clock_timestamp() - interval '1 day'"
# The same by Redis' own clock, in microseconds: are we granted, and how far ahead of the clock is what was granted?
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


def take(name: str, pace: Pace) -> Grant:
    """Ask for one. Names have the form `what:whose`, such as `api:<id of a key>`.

    Raises:
        TransientError: Redis is to keep the limits and does not answer; nothing was granted.
    """
    ahead = pace.interval * (pace.burst - 1)
    url = settings.CONFIG.redis_url
    granted, used = _in_redis(url, name, pace.interval, ahead) if url else _in_database(name, pace.interval, ahead)
    left = max(int((ahead - used) / pace.interval + 1), 0)
    return Grant(granted=granted, wait=max(used - ahead, 0.0), left=left)


def forget_idle() -> int:
    """Drop what nobody asked for in a day; it would be granted like something new."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)
        return int(cursor.rowcount)


def _in_database(name: str, interval: float, ahead: float) -> tuple[bool, float]:
    values: dict[str, Any] = {"name": name, "interval": interval, "ahead": ahead}
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, values)
        taken = cursor.fetchone()
        if taken is not None:
            return True, float(taken[0])
        cursor.execute(_LOOK, values)
        used = cursor.fetchone()
        return False, float(used[0]) if used else 0.0


def _in_redis(url: str, name: str, interval: float, ahead: float) -> tuple[bool, float]:
    arguments = [round(interval * _MICROSECONDS), round(ahead * _MICROSECONDS)]
    granted, used = redis_client.run_script(url, _SCRIPT, [f"harvester:limit:{name}"], arguments)
    return bool(granted), int(used) / _MICROSECONDS
