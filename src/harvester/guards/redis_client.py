"""The Redis client, for rate limits that several machines share."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import redis
from redis.commands.core import Script

from harvester.guards.redaction import redact_text
from harvester.kernel.errors import TransientError

#: Seconds to connect and to respond. A slower Redis would be of no use.
PATIENCE_SECONDS = 3.0


def ping(url: str) -> None:
    """Raise an error of one line if Redis does not respond."""
    client = _connect(url)
    try:
        client.ping()
    except (redis.RedisError, OSError) as error:
        raise _unavailable(error) from None
    finally:
        client.close()


def run_script(url: str, source: str, keys: Sequence[str], arguments: Sequence[int]) -> list[Any]:
    """Run a script atomically and return its answer.

    Raises:
        TransientError: Redis does not respond.
    """
    try:
        answer: list[Any] = _script(url, source)(keys=keys, args=arguments)
    except (redis.RedisError, OSError) as error:
        raise _unavailable(error) from None
    return answer


@lru_cache(maxsize=8)
def _script(url: str, source: str) -> Script:
    """Return a script, kept with its connections for the life of the process."""
    return _connect(url).register_script(source)


def _connect(url: str) -> "redis.Redis":
    return redis.Redis.from_url(url, socket_connect_timeout=PATIENCE_SECONDS, socket_timeout=PATIENCE_SECONDS)


def _unavailable(error: Exception) -> TransientError:
    reason = redact_text(" ".join(str(error).split())).rstrip(".")
    return TransientError(
        f"Redis does not respond: {reason}. Start it, correct HARVESTER_REDIS_URL, "
        "or unset it to keep rate limits in PostgreSQL."
    )
