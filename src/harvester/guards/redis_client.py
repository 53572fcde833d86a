"""The door to Redis, which keeps rate limits where several machines share them."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import redis
from redis.commands.core import Script

from harvester.guards.redaction import redact_text
from harvester.kernel.errors import TransientError

#: Seconds to connect and to answer. Redis is near, or it is of no use.
PATIENCE_SECONDS = 3.0


def ping(url: str) -> None:
    """Return if Redis answers; say in one line why it does not."""
    client = _connect(url)
    try:
        client.ping()
    except (redis.RedisError, OSError) as error:
        raise _silence(error) from None
    finally:
        client.close()


def run_script(url: str, source: str, keys: Sequence[str], arguments: Sequence[int]) -> list[Any]:
    """What a script answers that Redis carries out in one piece.

    Raises:
        TransientError: Redis does not answer.
    """
    try:
        answer: list[Any] = _script(url, source)(keys=keys, args=arguments)
    except (redis.RedisError, OSError) as error:
        raise _silence(error) from None
    return answer


@lru_cache(maxsize=8)
def _script(url: str, source: str) -> Script:
    """Kept with its connections for the life of the process."""
    return _connect(url).register_script(source)


def _connect(url: str) -> "redis.Redis":
    return redis.Redis.from_url(url, socket_connect_timeout=PATIENCE_SECONDS, socket_timeout=PATIENCE_SECONDS)


def _silence(error: Exception) -> TransientError:
    said = redact_text(" ".join(str(error).split())).rstrip(".")
    return TransientError(
        f"Redis does not answer: {said}. Start it, correct HARVESTER_REDIS_URL, "
        "or unset it to keep rate limits in PostgreSQL."
    )
