"""What can be wrong with a feed, beyond what its doors and its parser say.

TransientError
├── CountMismatch       the file has other rows than the partner's manifest says: it may still be on its way
└── ManifestUnreadable  the partner's manifest cannot be parsed: it may still be on its way
TerminalError
├── NoValidProducts     not one row of the file can be used
└── Conflict            what a person asked for is not possible now
    └── FeedRetired     the feed was retired for good
"""

from harvester.kernel.errors import Conflict, TerminalError, TransientError


class CountMismatch(TransientError):
    """The file has other rows than the partner's manifest says."""

    code = "COUNT_MISMATCH"


class ManifestUnreadable(TransientError):
    """The partner's manifest cannot be parsed."""

    code = "MANIFEST_UNREADABLE"


class NoValidProducts(TerminalError):
    """Not one row of the file can be used."""

    code = "NO_VALID_PRODUCTS"


class FeedRetired(Conflict):
    """The feed was retired for good."""

    code = "FEED_RETIRED"
