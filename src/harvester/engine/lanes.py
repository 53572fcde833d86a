"""How many jobs of a lane may run at once."""

from django.db import connection

from harvester.engine import sql
from harvester.engine.enqueue import LONGEST_LANE, LONGEST_QUEUE
from harvester.engine.json_values import check_name
from harvester.kernel.errors import InvalidInput


def set_concurrency(queue: str, lane: str, concurrency: int) -> None:
    """Let up to `concurrency` jobs of this lane run at once; the default is 1."""
    if concurrency < 1:
        raise InvalidInput("A lane needs a concurrency of at least 1; to stop its jobs, cancel them.")
    check_name(queue, "queue", LONGEST_QUEUE)
    check_name(lane, "lane", LONGEST_LANE)
    with connection.cursor() as cursor:
        cursor.execute(sql.SET_LANE_CONCURRENCY, {"queue": queue, "lane": lane, "concurrency": concurrency})
