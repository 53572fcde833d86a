"""The outcomes of pages."""

from enum import StrEnum


class PageOutcome(StrEnum):
    """The outcome of a page. Pages in quarantine keep what was found, for a person to look at."""

    OFFER = "OFFER"
    SUPERSEDED = "SUPERSEDED"  # a newer observation of the product was promoted before
    NO_AGREEMENT = "NO_AGREEMENT"  # quarantine: the page says several prices, or none that is certain
    GONE = "GONE"  # 404 or 410
    NETWORK = "NETWORK"  # any other status


#: Outcomes of pages that wait for a person.
QUARANTINED = (PageOutcome.NO_AGREEMENT,)
