"""Which parameters of a URL belong to an advertising network, and which choose the product."""

from dataclasses import dataclass

from harvester.kernel.special_networks import Network

#: Parameters that can only belong to one click or one message, in lower case. Only these are left out of the displayed
#: link: any other may choose the product in some shop.
CLICK_NAMES = frozenset({
    # Google, Meta, Microsoft, TikTok, X, LinkedIn, Pinterest, Reddit, Snapchat, Yandex, Taboola, Outbrain, Quora
    "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "gad_source", "gad_campaignid", "_gl", "_ga", "srsltid", "gdfms",
    "gdftrk", "gdffi", "fbclid", "igshid", "igsh", "msclkid", "ttclid", "twclid", "li_fat_id", "epik", "rdt_cid",
    "sccid", "yclid", "ymclid", "_openstat", "tblci", "dicbo", "obclid", "qclid",
    # Adobe, Marketo, HubSpot, Mailchimp, Klaviyo, MailerLite, Omeda, Vero, Wicked Reports, Branch
    "s_kwcid", "ef_id", "mkt_tok", "_hsenc", "_hsmi", "__hstc", "__hssc", "__hsfp", "hsctatracking", "mc_cid", "mc_eid",
    "_kx", "ml_subscriber", "ml_subscriber_hash", "oly_anon_id", "oly_enc_id", "vero_id", "vero_conv", "wickedid",
    "_branch_match_id", "_branch_referrer",
    # Impact, Awin, CJ, ShareASale, Rakuten, AvantLink, Tradedoubler, Partnerize, Zanox, Admitad, Webgains, Everflow
    "irclickid", "irgwc", "ir_campaignid", "ir_adid", "ir_partnerid", "irmpname", "awc", "cjevent", "cjdata", "sscid",
    "ranmid", "raneaid", "ransiteid", "avad", "tduid", "clickref", "x-clickref", "zanpid", "admitad_uid", "tagtag_uid",
    "wgu", "wgexpiry", "_ef_transaction_id", "clickid", "click_id",
})  # fmt: skip
CLICK_PREFIXES = ("utm_", "hsa_", "mtm_")
#: Those, and names that usually hold the source of a visit: left out of an identity unless the feed keeps them.
TRACKING_NAMES = CLICK_NAMES | frozenset({
    "ref", "source", "campaign", "sharedid", "subid", "sub_id", *(f"subid{number}" for number in range(1, 6)),
    "aff", "affid", "aff_id", "affcode", "aff_code", "affiliate", "affiliateid", "affiliate_id", "affiliate_code",
    "affname", "aff_name", "affsource", "aff_source", "affsub", "aff_sub",
    *(f"aff_sub{number}" for number in range(1, 6)), "afftrack", "aff_track", "aff_click_id",
    "aff_platform", "aff_trace_key", "aff_fcid", "aff_fsk", "aff_short_key",
})  # fmt: skip
TRACKING_PREFIXES = (*CLICK_PREFIXES, "pk_", "piwik_", "matomo_")
#: Parameters that choose the product; no rule of a network can drop them.
IDENTITY_NAMES = frozenset({"sku", "pid", "variant", "size", "color", "caliber", "id", "p"})


@dataclass(frozen=True, kw_only=True)
class LinkRules:
    """The format of one network's tracked links.

    Attributes:
        tracked_path: pattern of a tracked link's whole path without trailing slashes; none if links are not wrapped.
        landing_parameters: parameters that may hold the landing page, the first that does wins.
        tracking_names: the network's own tracking parameters, in lower case.
        tracking_prefixes: prefixes of such parameters.
        shown_names: tracking parameters that stay in the displayed link, because a shop may use them too.
        kept_names: parameters, in lower case, that choose a product in this feed and are never left out.
        allowed_networks: non-public networks that links may lead to.
    """

    tracked_path: str | None = None
    landing_parameters: tuple[str, ...] = ()
    tracking_names: frozenset[str] = frozenset()
    tracking_prefixes: tuple[str, ...] = ()
    shown_names: frozenset[str] = frozenset()
    kept_names: frozenset[str] = frozenset()
    allowed_networks: tuple[Network, ...] = ()

    def __post_init__(self) -> None:
        names = (*self.tracking_names, *self.tracking_prefixes, *self.shown_names, *self.kept_names)
        if any(name != name.lower() for name in names):
            raise ValueError("tracking parameters are compared in lower case")
        if "" in self.tracking_prefixes:
            raise ValueError("an empty prefix would drop every parameter")

    @property
    def never_dropped(self) -> frozenset[str]:
        """Parameters that choose the product; they override all other rules."""
        return IDENTITY_NAMES | self.kept_names

    def is_tracking(self, name: str) -> bool:
        """Whether a parameter of this name, in lower case, is left out of an identity."""
        if name in self.never_dropped:
            return False
        known = name in TRACKING_NAMES or name in self.tracking_names
        return known or name.startswith(TRACKING_PREFIXES + self.tracking_prefixes)

    def is_click(self, name: str) -> bool:
        """Whether a parameter of this name, in lower case, is left out of the displayed link."""
        if name in self.never_dropped or name in self.shown_names:
            return False
        known = name in CLICK_NAMES or name in self.tracking_names
        return known or name.startswith(CLICK_PREFIXES + self.tracking_prefixes)


#: For sources outside any network.
NO_NETWORK = LinkRules()
