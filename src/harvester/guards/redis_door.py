"""The door to Redis, which keeps rate limits where several machines share them."""

import redis

from harvester.guards.redaction import redact_text
from harvester.kernel.errors import TransientError

#: Seconds to connect and to answer. Redis is near, or it is of no use.
PATIENCE_SECONDS = 3.0


def ping(url: str) -> None:
    """Return if Redis answers; say in one line why it does not."""
    client = redis.Redis.from_url(url, socket_connect_timeout=PATIENCE_SECONDS, socket_timeout=PATIENCE_SECONDS)
    try:
        client.ping()
    except (redis.RedisError, OSError) as error:
        said = redact_text(" ".join(str(error).split())).rstrip(".")
        raise TransientError(
            f"Redis does not answer: {said}. Start it, correct HARVESTER_REDIS_URL, "
            "or unset it to keep rate limits in PostgreSQL."
        ) from None
    finally:
        client.close()
