"""The words of the catalog. A word that is not here does not exist."""

from enum import StrEnum


class SourceKind(StrEnum):
    """Where a source's offers come from."""

    DIRECT = "DIRECT"  # the retailer itself
    AFFILIATE_FEED = "AFFILIATE_FEED"  # an affiliate network's catalog
    OTHER = "OTHER"  # anything else; shown like an affiliate


class Visibility(StrEnum):
    """Whether what was scraped from a source counts; prices of other origin always do."""

    ELIGIBLE = "ELIGIBLE"
    INELIGIBLE = "INELIGIBLE"


class CorrectionAction(StrEnum):
    """How a correction changes the reading of prices; IGNORE wins, then the newest SET."""

    IGNORE = "IGNORE"
    MULTIPLIER = "MULTIPLIER"
    SET = "SET"


class CorrectionExtent(StrEnum):
    """For how long a correction counts."""

    OBSERVED = "OBSERVED"  # for the prices shown when it was made, until each product's next different price
    WINDOW = "WINDOW"  # for every price observed between two moments, either of which may be open


class CorrectionScope(StrEnum):
    """Which prices a correction is about."""

    PRODUCT = "PRODUCT"
    RETAILER = "RETAILER"
    SOURCE = "SOURCE"
    RUN = "RUN"


class Shown(StrEnum):
    """How an offer must stand with consumers to be listed."""

    VISIBLE = "VISIBLE"
    SOURCE_NOT_SHOWN = "SOURCE_NOT_SHOWN"
    EXPIRED = "EXPIRED"
    WITHOUT_OFFER = "WITHOUT_OFFER"  # products of which no price may be read
