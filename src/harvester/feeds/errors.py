"""Errors of feeds, besides those of connections, of the reader and of runs.

TransientError
├── CountMismatch       the file has another number of rows than the manifest: the partner may still be writing it
└── ManifestUnreadable  the partner's manifest cannot be parsed: the partner may still be writing it
TerminalError
├── NoValidProducts     not one row of the file can be used
└── Conflict            the request is not possible now
    └── FeedRetired     the feed was retired for good
"""

from harvester.kernel.errors import Conflict, TerminalError, TransientError


class CountMismatch(TransientError):
    """The file has another number of rows than the partner's manifest."""

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
