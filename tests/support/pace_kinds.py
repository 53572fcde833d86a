"""A kind of job that visits pages politely: with a lane, a strict limit and one client for the process."""

from functools import cache

from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.guards import limits
from harvester.guards.limits import RateLimit
from harvester.guards.page_client import PageClient
from harvester.kernel.retry import RetryPolicy
from tests.support.guards import LOOPBACK


@cache
def _client() -> PageClient:
    return PageClient(policy=LOOPBACK, user_agent="HarvesterTest/1.0")


@job_kind("test.visit", retry=RetryPolicy(base=0.1, factor=1, attempts=100))
def visit(job: RunningJob, url: str, domain: str, interval: float) -> int:
    def ask_for_slot() -> None:
        grant = limits.take(f"pace:{domain}", RateLimit(count=1, seconds=interval), strict=True)
        if not grant.granted:
            raise Snooze(grant.wait, "not its turn", rest_lane=True)
        job.rest_lane(grant.wait)

    answer = _client().get(url, before_send=ask_for_slot)
    # The interval counts from the request, which was written a little after the grant.
    job.rest_lane(max(interval - answer.duration, 0.0))
    return answer.status
