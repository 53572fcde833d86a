"""The states and outcomes of runs of every kind."""

from enum import StrEnum
from typing import Final


class RunStatus(StrEnum):
    """RUNNING ──> SUCCEEDED | FAILED."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class RunOutcome(StrEnum):
    """The outcome of a run that succeeded.

    SKIPPED                                  nothing has changed since the last run
    PROMOTED                                 every gate passed
    EMPTY                                    nothing was found that could be promoted
    QUARANTINED                              a batch of its parts was refused
    HELD ──> APPROVED | REJECTED | OVERTAKEN  a gate held it; a person, or a newer run, decided
    """

    PROMOTED = "PROMOTED"
    HELD = "HELD"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    OVERTAKEN = "OVERTAKEN"
    SKIPPED = "SKIPPED"
    QUARANTINED = "QUARANTINED"
    EMPTY = "EMPTY"


#: Outcomes of runs that a gate held, whatever was decided.
EVER_HELD: Final = (RunOutcome.HELD, RunOutcome.APPROVED, RunOutcome.REJECTED, RunOutcome.OVERTAKEN)
#: Outcomes of runs that became visible to consumers.
PROMOTED: Final = (RunOutcome.PROMOTED, RunOutcome.APPROVED)


class RunTrigger(StrEnum):
    """Why a run began; never changes."""

    SCHEDULED = "SCHEDULED"
    MANUAL = "MANUAL"
    MANUAL_PENDING = "MANUAL_PENDING"  # requested while another run was in progress
    RETRY = "RETRY"  # somebody retried the job of a run that had ended
    RECHECK = "RECHECK"  # a second look at something doubtful that an earlier run found
