"""What in an address belongs to an advertising network, and what chooses the product."""

from dataclasses import dataclass

#: Parameters that say where a visitor came from, in lower case.
TRACKING_NAMES = frozenset(
    {
        *("ref", "source", "campaign", "gclid", "gbraid", "wbraid", "dclid", "fbclid", "msclkid", "ttclid"),
        *("yclid", "srsltid", "mc_cid", "mc_eid"),
        # Impact
        *("irclickid", "irgwc", "ir_campaignid", "ir_adid", "ir_partnerid", "irmpname", "clickid", "click_id"),
        *("sharedid", "subid", "sub_id", "subid1", "subid2", "subid3", "subid4", "subid5"),
        # Awin, CJ, ShareASale, Rakuten, AvantLink, Tradedoubler
        *("awc", "cjevent", "cjdata", "sscid", "ranmid", "raneaid", "ransiteid", "avad", "tduid"),
    }
)
TRACKING_PREFIXES = ("utm_", "aff", "affiliate")
#: Parameters that choose the product; no rule of a network can drop them.
IDENTITY_NAMES = frozenset({"sku", "pid", "variant", "size", "color", "caliber", "id", "p"})


@dataclass(frozen=True, kw_only=True)
class LinkRules:
    """How one network's tracked links look.

    Attributes:
        tracked_path: pattern of a tracked link's whole path without trailing slashes; none if links are not wrapped.
        landing_parameters: parameters that carry the landing page, the first that does so wins.
        tracking_names: the network's own tracking parameters, in lower case.
        tracking_prefixes: beginnings of such parameters.
    """

    tracked_path: str | None = None
    landing_parameters: tuple[str, ...] = ()
    tracking_names: frozenset[str] = frozenset()
    tracking_prefixes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(name != name.lower() for name in (*self.tracking_names, *self.tracking_prefixes)):
            raise ValueError("tracking parameters are compared in lower case")
        if "" in self.tracking_prefixes:
            raise ValueError("an empty prefix would drop every parameter")

    def is_tracking(self, name: str) -> bool:
        """Whether a parameter of this name, in lower case, says nothing about the product."""
        if name in IDENTITY_NAMES:
            return False
        known = name in TRACKING_NAMES or name in self.tracking_names
        return known or name.startswith(TRACKING_PREFIXES + self.tracking_prefixes)


#: For sources outside any network.
NO_NETWORK = LinkRules()
