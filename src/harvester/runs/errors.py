"""The errors of runs of any kind.

TransientError
└── DatabaseUnavailable the database ended the session or did not answer
TerminalError
├── Superseded          a newer run took this run's place
├── Abandoned           the job of a run ended without it
├── NotFound
│   └── RunNotFound     there is no such run
└── Conflict            what a person asked for is not possible now
    ├── SubjectBusy     a run, or another decision, is in progress
    ├── RunNotSucceeded the run did not succeed
    ├── NotBlocked      the run does not wait for a decision
    ├── AlreadyApproved somebody approved it before
    ├── AlreadyRejected somebody rejected it before
    ├── StaleRun        a newer run took its place
    └── FiguresChanged  the run is no longer what the person saw
"""

from harvester.kernel.errors import Conflict, NotFound, TerminalError, TransientError


class DatabaseUnavailable(TransientError):
    """The database ended the session of a run, or did not answer."""

    code = "DATABASE_UNAVAILABLE"


class Superseded(TerminalError):
    """A newer run took this run's place."""

    code = "SUPERSEDED"


class Abandoned(TerminalError):
    """The job of the run ended without it."""

    code = "ABANDONED"


class RunNotFound(NotFound):
    """There is no such run."""

    code = "RUN_NOT_FOUND"


class SubjectBusy(Conflict):
    """A run of the same subject, or another decision, is in progress; the code names the subject, as in FEED_BUSY."""

    def __init__(self, subject: str, message: str) -> None:
        super().__init__(message)
        self.code = f"{subject.upper()}_BUSY"


class RunNotSucceeded(Conflict):
    """The run did not succeed."""

    code = "RUN_NOT_SUCCEEDED"


class NotBlocked(Conflict):
    """The run does not wait for a decision."""

    code = "NOT_BLOCKED"


class AlreadyApproved(Conflict):
    """Somebody approved the run before."""

    code = "ALREADY_APPROVED"


class AlreadyRejected(Conflict):
    """Somebody rejected the run before."""

    code = "ALREADY_REJECTED"


class StaleRun(Conflict):
    """A newer run took its place."""

    code = "STALE_RUN"


class FiguresChanged(Conflict):
    """The run is no longer what the person saw."""

    code = "FIGURES_CHANGED"
