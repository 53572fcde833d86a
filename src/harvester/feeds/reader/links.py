"""Addresses of many rows at once, exactly as `kernel.urls` reads one.

Most addresses are plain: nothing in them has to be escaped, unescaped or lowered. Those are worked on as columns, the
landing pages inside tracked links as well. All others go through the kernel one by one.
"""

from collections.abc import Iterable
from functools import cache, partial
from typing import Final, NamedTuple

import polars as pl

from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER
from harvester.feeds.reader.lookup import collected, mapped, one_of, patched, whole
from harvester.kernel.link_rules import CLICK_NAMES, CLICK_PREFIXES, TRACKING_NAMES, TRACKING_PREFIXES, LinkRules
from harvester.kernel.rejects import Rejected
from harvester.kernel.special_networks import PRIVATE_DOMAINS
from harvester.kernel.urls import LONGEST_URL, canonical_url, identity_url, is_public_url, link_identity

#: Seven labels of at most 32 characters stay below what a host may have.
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,30}[a-z0-9_])?"
#: A name with a dot that ends with no number: anything else is an address, or only a private network knows it.
_ORIGIN: Final = rf"https?://(?:{_LABEL}\.){{1,6}}[a-z](?:[a-z0-9_-]{{0,30}}[a-z0-9_])?"
_PRIVATE: Final = rf"\A[^/]*//[^/?#]*\.{one_of(PRIVATE_DOMAINS)}(?:[/?#]|\z)"
#: Escapes in their normal form: capital digits, and none of a character that needs no escape.
_ESCAPE: Final = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_PATH: Final = f"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|{_ESCAPE})*)?"
_NAME: Final = "[A-Za-z0-9._~!$'()*,;:@/?-]+"
_PAIR: Final = f"{_NAME}=(?:[A-Za-z0-9._~!$'()*+,;=:@/?-]|{_ESCAPE})*"
_FRAGMENT: Final = "(?:#[!-~]*)?"
_PLAIN: Final = whole(rf"{_ORIGIN}{_PATH}(?:\?{_PAIR}(?:&{_PAIR})*)?{_FRAGMENT}")
_PLAIN_PAGE: Final = whole(f"{_ORIGIN}{_PATH}{_FRAGMENT}")
#: A tracked link of which only the landing page counts; names have to be readable as they are.
_TRACKED_QUERY: Final = rf"\?{_NAME}(?:=[!-~--[&#]]*)?(?:&{_NAME}(?:=[!-~--[&#]]*)?)*"
#: Any address that the kernel surely takes for one.
_WEB: Final = whole(rf"{_ORIGIN}(?:[/?#][!-~]*)?")
_STILL_ENCODED: Final = "[Hh][Tt][Tt][Pp][Ss]?%"
#: Every escape of an ASCII character, and what it stands for; a plus stands for a blank.
_ESCAPES: Final = {
    "+": " ",
    **{f"%{spelled}": chr(code) for code in range(0x80) for spelled in (f"{code:02x}", f"{code:02X}")},
}


#: What the kernel says of a link that is not plain.
_ODD: Final = pl.Schema(
    {"url": pl.String(), "identity": pl.String(), "link_identity": pl.String(), "fault": FAULT_TYPE}
)


class _Traits(NamedTuple):
    """What occurs in the addresses of a block; what does not occur costs nothing."""

    tracking: bool
    fragments: bool
    #: A plus, several parameters, or a slash at the end of the path.
    more: bool


class LinkReader:
    """Reads the addresses of one network."""

    def __init__(self, rules: LinkRules) -> None:
        self._rules = rules
        self._tracking, self._clicks = _tracking_pattern(rules), _click_pattern(rules)
        self._tracked: str | None = None
        if rules.tracked_path is not None:
            self._tracked = rf"\A[^/?#]*//[^/?#]*(?:{rules.tracked_path})/*(?:[?#]|\z)"
        self._tracked_link = whole(f"{_ORIGIN}(?:{rules.tracked_path}){_TRACKED_QUERY}")
        self._parameters = [f"&{name}=" for name in rules.landing_parameters]
        self._traits = _traits(self._tracking)

    def looks(self, link: pl.Expr) -> list[pl.Expr]:
        """What to see about links before anything is done with them."""
        pattern = _PLAIN if self._tracking and self._clicks else _PLAIN_PAGE
        # A character of a plain address is one byte.
        is_plain = link.str.contains(pattern) & _is_short(link) & ~link.str.contains(_PRIVATE)
        seen = [link.alias("link"), is_plain.alias("link_is_plain")]
        if self._tracked:
            seen.append(link.str.contains(self._tracked).alias("link_is_tracked"))
        return seen

    def unwrapped(self, looked: pl.DataFrame) -> pl.DataFrame:
        """Tracked links replaced by their landing pages, where those can be worked on."""
        if "link_is_tracked" not in looked.columns:
            return looked
        places = looked["link_is_tracked"].arg_true()
        if not len(places):
            return looked
        links = looked["link"].gather(places)
        landing = pl.DataFrame({"landing": self._landings(links), "given": links})
        seen = landing.select(self.looks(pl.col("landing")))
        # A tracked link that names no landing page stands for itself.
        is_plain = seen["link_is_plain"] & ~(seen["link_is_tracked"] & (landing["landing"] != landing["given"]))
        return looked.with_columns(
            patched(looked["link"], places, landing["landing"]),
            patched(looked["link_is_plain"], places, is_plain),
        )

    def work(self, links: pl.Series) -> list[pl.Series]:
        """Of these links `url` to show, `identity` and `link_identity`, right where a link is plain."""
        frame = links.to_frame().lazy()
        traits = _Traits(**collected(frame.select(self._traits)).row(0, named=True))
        if not any(traits):
            return collected(frame.select(_AS_GIVEN)).get_columns()
        patterns = (self._tracking, self._clicks) if traits.tracking else (None, None)
        for step in _taken_apart(*patterns, has_fragments=traits.fragments):
            frame = frame.with_columns(step)
        parts = collected(frame)
        ordered = _ordered(parts["kept"]).alias("ordered")
        # Where nothing is left out of a link, or only what belongs to a click, the two are one.
        is_one = not traits.tracking or (parts["kept"] == parts["shown"]).all()
        shown = ordered if is_one else _ordered(parts["shown"])
        whole = parts.lazy().with_columns(ordered, shown.alias("shown_ordered")).select(_PUT_TOGETHER)
        return collected(whole).get_columns()

    def read_odd(self, texts: list[str]) -> pl.DataFrame:
        """The same of links that are not plain, and the `fault` of those that are none."""
        return pl.DataFrame([self._read_one(text) for text in texts], schema=_ODD, orient="row")

    def _read_one(self, text: str) -> tuple[str, str, str, int]:
        try:
            rules = self._rules
            return canonical_url(text, rules), identity_url(text, rules), link_identity(text, rules), 0
        except Rejected as refusal:
            return "", "", "", NUMBER[refusal.fault]

    def _landings(self, links: pl.Series) -> pl.Series:
        """The landing page in each tracked link; the link if it names none, or if it takes more to find it."""
        query = links.str.replace("?", "&", literal=True)
        if not self._parameters:
            return links
        names_some = query.str.contains_any(self._parameters)
        # The path is compared without slashes at its end, and in its normal form.
        usable = links.str.contains(self._tracked_link) & ~links.str.contains("/?", literal=True)
        usable &= links.str.contains(rf"\A{_ORIGIN}{_PATH}\?") & (links.str.len_bytes() <= LONGEST_URL)
        usable &= ~links.str.contains(_PRIVATE)
        # An empty text is not plain, so the kernel gets to see the link.
        landing = self._landing_in(query).zip_with(usable, pl.Series([""]))
        return landing.zip_with(names_some | ~usable, links)

    def _landing_in(self, query: pl.Series) -> pl.Series:
        parameter = self._parameters[0]
        behind = query.str.splitn(parameter, 2).struct.field("field_1").fill_null("")
        landing = _decoded(behind.str.splitn("&", 2).struct.field("field_0"))
        again = landing.str.contains(rf"\A{_STILL_ENCODED}")
        if again.any():
            landing = landing.zip_with(~again, _decoded(landing))
        return landing.zip_with(~behind.str.contains(parameter, literal=True), pl.Series([""]))


def _is_short(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes() <= LONGEST_URL


def _traits(tracking: str | None) -> list[pl.Expr]:
    link = pl.col("link")
    more = link.str.contains("[&+]") | link.str.contains("/?", literal=True) | link.str.ends_with("/")
    return [
        (link.str.contains(f"(?i)[?&]{tracking}").any() if tracking else pl.lit(value=False)).alias("tracking"),
        link.str.contains("#", literal=True).any().alias("fragments"),
        more.any().alias("more"),
    ]


def _without_scheme(link: pl.Expr) -> pl.Expr:
    return link.str.strip_prefix("https://").str.strip_prefix("http://")


@cache
def _taken_apart(tracking: str | None, clicks: str | None, *, has_fragments: bool) -> list[list[pl.Expr]]:
    """Steps from `link` to `page`, `query`, `fragment`, and its parameters with an ampersand before each.

    Those that are `kept` make the identity, those that are `shown` the address that is shown.
    """
    before, behind = (pl.col("link").str.splitn("#", 2).struct.field(field) for field in ("field_0", "field_1"))
    page_and_query = (before if has_fragments else pl.col("link")).str.splitn("?", 2)
    fragment = ("#" + behind).fill_null("") if has_fragments else pl.lit("")
    pairs = pl.when(pl.col("query") != "").then("&" + pl.col("query")).otherwise(pl.lit(""))
    kept, shown = (pairs.str.replace_all(f"(?i)&{pattern}", "") if pattern else pairs for pattern in (tracking, clicks))
    return [
        [page_and_query.struct.rename_fields(["page", "query"]).struct.unnest(), fragment.alias("fragment")],
        [kept.alias("kept"), shown.alias("shown")],
    ]


def _put_together() -> list[pl.Expr]:
    """The address as it is shown, otherwise as it was, and what identifies the page and the link."""
    page, query, shown = pl.col("page"), pl.col("query"), pl.col("shown")
    is_whole = query.is_null() | (shown.str.len_bytes() > query.str.len_bytes())
    url = pl.when(is_whole).then("link").otherwise(_joined(page, shown) + pl.col("fragment"))
    place = _without_scheme(page).str.strip_chars_end("/")
    identity, link = (_joined(place, pl.col(name)) for name in ("ordered", "shown_ordered"))
    return [url.alias("url"), identity.alias("identity"), link.alias("link_identity")]


def _joined(page: pl.Expr, pairs: pl.Expr) -> pl.Expr:
    return page + pl.when(pairs != "").then("?" + pairs.str.slice(1)).otherwise(pl.lit(""))


def _ordered(pairs: pl.Series) -> pl.Series:
    """The parameters in their order, blanks in their one spelling."""
    spelled = pairs.str.replace_all("+", "%20", literal=True)
    # Sorting costs more than all the rest, and most addresses have one parameter at most.
    places = (spelled.str.count_matches("&", literal=True) > 1).arg_true()
    if not len(places):
        return spelled
    several = spelled.gather(places).str.slice(1).str.split("&").list.sort().list.join("&")
    return patched(spelled, places, "&" + several)


_AS_GIVEN: Final = [
    pl.col("link").alias("url"),
    *(_without_scheme(pl.col("link")).alias(name) for name in ("identity", "link_identity")),
]
_PUT_TOGETHER: Final = _put_together()


def _decoded(texts: pl.Series) -> pl.Series:
    return texts.str.replace_many(_ESCAPES)


def _tracking_pattern(rules: LinkRules) -> str | None:
    """A pattern of tracking parameters; none if a pattern cannot say it."""
    prefixes = (*TRACKING_PREFIXES, *rules.tracking_prefixes)
    if any(name.startswith(prefixes) for name in rules.never_dropped):
        return None
    return _parameters((TRACKING_NAMES | rules.tracking_names) - rules.never_dropped, prefixes)


def _click_pattern(rules: LinkRules) -> str | None:
    """The same for parameters that are not shown."""
    prefixes, kept = (*CLICK_PREFIXES, *rules.tracking_prefixes), rules.never_dropped | rules.shown_names
    if any(name.startswith(prefixes) for name in kept):
        return None
    return _parameters((CLICK_NAMES | rules.tracking_names) - kept, prefixes)


def _parameters(names: Iterable[str], prefixes: Iterable[str]) -> str:
    return f"(?:{one_of(names)}|{one_of(prefixes)}[^=&]*)=[^&]*"


def is_surely_web(text: pl.Expr) -> pl.Expr:
    """Which texts are addresses of the public web at first sight."""
    return text.str.contains(_WEB) & _is_short(text) & ~text.str.contains(_PRIVATE)


def read_odd_addresses(surely: pl.Series, texts: pl.Series, rules: LinkRules) -> pl.Series:
    """Which texts are addresses of the public web, or of allowed networks, the others read by the kernel."""
    places = (~surely).arg_true()
    read = partial(is_public_url, rules=rules)
    return patched(surely, places, mapped(texts.gather(places), read, pl.Boolean()))
