"""Claims whose COMMIT was sent and never answered."""

import time
from uuid import UUID

from harvester.engine import sql
from harvester.engine.connections import Connection
from harvester.engine.outcomes import Ending
from harvester.engine.states import JobState

#: For this long after the database was reached again, it may still be about to carry out the lost session's COMMIT.
DOUBT_SECONDS = 60.0
#: Time between two looks while in doubt.
LOOK_SECONDS = 1.0


class UnansweredClaims:
    """Leases under which jobs may have been claimed without this worker knowing.

    Nobody beats for such jobs. Without this they would count as stuck after minutes, with an attempt used up that
    was none; a job with one attempt would fail without ever having run.
    """

    def __init__(self) -> None:
        self._doubted_until: dict[UUID, float | None] = {}
        self._look_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._doubted_until)

    def add(self, lease: UUID) -> None:
        self._doubted_until[lease] = None
        self._look_at = 0.0

    def endings(self, connection: Connection) -> list[Ending]:
        """How to give back what was claimed under these leases after all."""
        now = time.monotonic()
        if not self._doubted_until or now < self._look_at:
            return []
        self._look_at = now + LOOK_SECONDS
        rows = connection.execute(sql.CLAIMED_UNDER, {"leases": list(self._doubted_until)}).fetchall()
        until = {lease: known or now + DOUBT_SECONDS for lease, known in self._doubted_until.items()}
        self._doubted_until = {lease: moment for lease, moment in until.items() if moment > now}
        return [_never_begun(job_id, lease) for job_id, lease in rows]


def _never_begun(job_id: int, lease: UUID) -> Ending:
    detail = "claimed, but the answer to the claim was lost"
    return Ending(job_id=job_id, lease=lease, state=JobState.PENDING, refund=1, detail=detail)
