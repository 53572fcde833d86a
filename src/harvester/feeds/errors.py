"""What can be wrong with a feed, beyond what its doors and its parser say.

TransientError
├── CountMismatch       the file has other rows than the partner's manifest says: it may still be on its way
├── ManifestUnreadable  the partner's manifest cannot be parsed: it may still be on its way
└── DatabaseUnavailable the database ended the session or did not answer
TerminalError
├── NoValidProducts     not one row of the file can be used
├── Superseded          a newer run took this run's place
├── Abandoned           the job of a run ended without it
├── NotFound
│   └── RunNotFound     there is no such run
└── Conflict            what a person asked for is not possible now
    ├── FeedBusy        a run, or another decision, is at work
    ├── FeedRetired     the feed was retired for good
    ├── RunNotSucceeded the run did not succeed
    ├── NotBlocked      the run does not wait for a decision
    ├── AlreadyApproved somebody approved it before
    ├── AlreadyRejected somebody rejected it before
    ├── StaleRun        a newer run took its place
    └── FiguresChanged  the run is not any more what the person saw
"""

from harvester.kernel.errors import Conflict, NotFound, TerminalError, TransientError


class CountMismatch(TransientError):
    """The file has other rows than the partner's manifest says."""

    code = "COUNT_MISMATCH"


class DatabaseUnavailable(TransientError):
    """The database ended the session of a run, or did not answer."""

    code = "DATABASE_UNAVAILABLE"


class ManifestUnreadable(TransientError):
    """The partner's manifest cannot be parsed."""

    code = "MANIFEST_UNREADABLE"


class NoValidProducts(TerminalError):
    """Not one row of the file can be used."""

    code = "NO_VALID_PRODUCTS"


class Superseded(TerminalError):
    """A newer run took this run's place."""

    code = "SUPERSEDED"


class Abandoned(TerminalError):
    """The job of the run ended without it."""

    code = "ABANDONED"


class RunNotFound(NotFound):
    """There is no such run."""

    code = "RUN_NOT_FOUND"


class FeedBusy(Conflict):
    """A run, or another decision, is at work."""

    code = "FEED_BUSY"


class FeedRetired(Conflict):
    """The feed was retired for good."""

    code = "FEED_RETIRED"


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
    """The run is not any more what the person saw."""

    code = "FIGURES_CHANGED"
