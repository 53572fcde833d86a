"""Addresses and identifiers of many rows at once, with the results of `kernel.urls` and `kernel.identity`.

Most addresses are plain: nothing in them has to be escaped, unescaped or lowercased. Those are read as columns, and so
are the landing pages inside tracked links. The kernel reads all others one by one. It is the same with identifiers.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from harvester.feeds.reader.expressions import any_of, collect, full_match, map_values, replace_at
from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER
from harvester.kernel.gtin import GTIN_LENGTHS, GtinResult, normalize_gtin, normalize_isbn
from harvester.kernel.identity import LONGEST_IDENTIFIER, clean_identifier
from harvester.kernel.link_rules import CLICK_NAMES, CLICK_PREFIXES, TRACKING_NAMES, TRACKING_PREFIXES, LinkRules
from harvester.kernel.network import Field
from harvester.kernel.rejects import Rejected
from harvester.kernel.special_networks import PRIVATE_DOMAINS
from harvester.kernel.text import CONTROLS, WORDS_FOR_NOTHING
from harvester.kernel.urls import LONGEST_URL, canonical_url, identity_url, is_public_url, link_identity

#: Identifiers that trimming does not make usable.
_ODD_IDENTIFIER: Final = f"{CONTROLS}|(?i:{full_match(any_of(WORDS_FOR_NOTHING))})"
_DIGITS: Final = full_match("[0-9]{1,14}")
_ISBN10_LENGTH: Final = 10
#: Check digits are computed for groups of four digits.
_GROUP: Final = 10_000
#: Of each group the sum that goes into the check digit: its last digit counts once, the one before it three times.
_SUMS: Final = np.array([1, 3, 1, 3]) @ np.array([np.arange(_GROUP) // 10**place % 10 for place in range(4)])
_READERS: Final[dict[Field, Callable[[str], GtinResult | None]]] = {
    Field.GTIN: normalize_gtin,
    Field.ISBN: normalize_isbn,
}


def is_odd_identifier(text: pl.Expr) -> pl.Expr:
    """Return which trimmed texts the kernel has to read."""
    return text.str.contains(_ODD_IDENTIFIER) | (text.str.len_bytes() > LONGEST_IDENTIFIER)


def read_odd_identifiers(values: pl.Series, faults: pl.Series, odd: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return identifiers and faults, with the odd ones read by the kernel."""
    places = odd.arg_true()
    found: list[str] = []
    found_faults: list[int] = []
    for text in values.gather(places).to_list():
        try:
            value, fault = clean_identifier(text), 0
        except Rejected as refusal:
            value, fault = "", NUMBER[refusal.fault]
        found.append(value)
        found_faults.append(fault)
    return replace_at(values, places, found), replace_at(faults, places, found_faults)


class GtinReader:
    """Reads the columns of GTINs of one file, in order of preference.

    Attributes:
        inputs: the expressions that `check` needs.
    """

    def __init__(self, columns: Sequence[tuple[Field, pl.Expr]]) -> None:
        self._fields = [field for field, _ in columns]
        self.inputs = [look for place, (field, text) in enumerate(columns) for look in _inputs(place, field, text)]
        places = range(len(columns))
        number = pl.lit("")
        for wanted in ("is_kept", "is_valid"):
            for place in reversed(places):
                number = pl.when(f"gtin_{place}_{wanted}").then(f"gtin_{place}").otherwise(number)
        given, valid = (
            pl.any_horizontal(pl.lit(value=False), *(f"gtin_{place}_{what}" for place in places))
            for what in ("is_given", "is_valid")
        )
        self._choice = [number.alias("gtin"), (given & ~valid).alias("bad_gtin")]

    def check(self, cells: pl.DataFrame) -> list[pl.Series]:
        """Return of each column the numbers, which are valid, which are kept, and which rows have one."""
        return [series for place, field in enumerate(self._fields) for series in _check(place, field, cells)]

    def choose(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add `gtin`, the first valid number or else the first to keep, and `bad_gtin`, if there is none valid."""
        return rows.with_columns(self._choice)


def _inputs(place: int, field: Field, text: pl.Expr) -> list[pl.Expr]:
    is_number = text.str.contains(_DIGITS)
    if field is Field.ISBN:
        is_number &= text.str.len_bytes() != _ISBN10_LENGTH
    return [
        text.alias(f"gtin_{place}"),
        is_number.alias(f"gtin_{place}_is_number"),
        text.cast(pl.Int64, strict=False).fill_null(0).alias(f"gtin_{place}_number"),
        text.str.len_bytes().is_in(list(GTIN_LENGTHS)).alias(f"gtin_{place}_has_length"),
        (text != "").alias(f"gtin_{place}_is_given"),
    ]


def _check(place: int, field: Field, cells: pl.DataFrame) -> list[pl.Series]:
    def read_one(text: str) -> str | None:
        """Return null for an empty cell, and an empty text for what cannot be a number."""
        result = _READERS[field](text)
        return None if result is None else result.kept or ""

    texts, given = cells[f"gtin_{place}"], cells[f"gtin_{place}_is_given"]
    is_number, numbers = cells[f"gtin_{place}_is_number"], cells[f"gtin_{place}_number"]
    kept = is_number & cells[f"gtin_{place}_has_length"] & (numbers > 0)
    valid = kept & _has_check_digit(numbers)
    places = (given & ~is_number).arg_true()
    if len(places):
        singly = map_values(texts.gather(places), read_one, pl.String())
        digits = singly.fill_null("")
        texts = replace_at(texts, places, digits)
        kept = replace_at(kept, places, digits != "")
        valid = replace_at(valid, places, _has_check_digit(digits.cast(pl.Int64, strict=False).fill_null(0)))
        given = replace_at(given, places, singly.is_not_null())
    return [texts, valid.alias(f"gtin_{place}_is_valid"), kept.alias(f"gtin_{place}_is_kept"), given]


def _has_check_digit(column: pl.Series) -> pl.Series:
    """Return which numbers have a weighted sum that is a multiple of ten; zero is not a number."""
    numbers = column.to_numpy()
    rest = np.abs(numbers)
    total = np.zeros(len(rest), np.int64)
    while rest.any():
        total += _SUMS[rest % _GROUP]
        rest = rest // _GROUP
    return pl.Series((total % 10 == 0) & (numbers > 0))


#: Seven labels of at most 32 characters stay below what a host may have.
_LABEL: Final = "[a-z0-9_](?:[a-z0-9_-]{0,30}[a-z0-9_])?"
#: A name with a dot that does not end with a number: anything else is an IP address, or known only to a private
#: network.
_ORIGIN: Final = rf"https?://(?:{_LABEL}\.){{1,6}}[a-z](?:[a-z0-9_-]{{0,30}}[a-z0-9_])?"
_PRIVATE: Final = rf"\A[^/]*//[^/?#]*\.{any_of(PRIVATE_DOMAINS)}(?:[/?#]|\z)"
#: Escapes in their normal form: uppercase digits, and none of a character that needs no escape.
_ESCAPE: Final = "%(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
_PATH: Final = f"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|{_ESCAPE})*)?"
_NAME: Final = "[A-Za-z0-9._~!$'()*,;:@/?-]+"
_PAIR: Final = f"{_NAME}=(?:[A-Za-z0-9._~!$'()*+,;=:@/?-]|{_ESCAPE})*"
_FRAGMENT: Final = "(?:#[!-~]*)?"
_PLAIN: Final = full_match(rf"{_ORIGIN}{_PATH}(?:\?{_PAIR}(?:&{_PAIR})*)?{_FRAGMENT}")
_PLAIN_PAGE: Final = full_match(f"{_ORIGIN}{_PATH}{_FRAGMENT}")
#: The query of a tracked link, of which only the landing page counts; names must not be escaped.
_TRACKED_QUERY: Final = rf"\?{_NAME}(?:=[!-~--[&#]]*)?(?:&{_NAME}(?:=[!-~--[&#]]*)?)*"
#: Addresses that the kernel certainly accepts.
_WEB: Final = full_match(rf"{_ORIGIN}(?:[/?#][!-~]*)?")
_STILL_ENCODED: Final = "[Hh][Tt][Tt][Pp][Ss]?%"
#: Every escape of an ASCII character -> the character; a plus stands for a blank.
_ESCAPES: Final = {
    "+": " ",
    **{f"%{spelled}": chr(code) for code in range(0x80) for spelled in (f"{code:02x}", f"{code:02X}")},
}


#: What the kernel makes of links that are not plain.
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
        prefixes = (*TRACKING_PREFIXES, *rules.tracking_prefixes)
        self._tracking = _parameters(TRACKING_NAMES | rules.tracking_names, prefixes, rules.never_dropped)
        prefixes, kept = (*CLICK_PREFIXES, *rules.tracking_prefixes), rules.never_dropped | rules.shown_names
        self._clicks = _parameters(CLICK_NAMES | rules.tracking_names, prefixes, kept)
        self._tracked: str | None = None
        if rules.tracked_path is not None:
            self._tracked = rf"\A[^/?#]*//[^/?#]*(?:{rules.tracked_path})/*(?:[?#]|\z)"
        self._tracked_link = full_match(f"{_ORIGIN}(?:{rules.tracked_path}){_TRACKED_QUERY}")
        self._landing_parameters = [f"&{name}=" for name in rules.landing_parameters]
        link, tracking = pl.col("link"), pl.lit(value=False)
        if self._tracking:
            tracking = link.str.contains(f"(?i)[?&]{self._tracking}").any()
        more = link.str.contains("[&+]") | link.str.contains("/?", literal=True) | link.str.ends_with("/")
        self._traits = [
            tracking.alias("tracking"),
            link.str.contains("#", literal=True).any().alias("fragments"),
            more.any().alias("more"),
        ]

    def inputs(self, link: pl.Expr) -> list[pl.Expr]:
        """Return the expressions that `unwrap` and `read_plain` need."""
        pattern = _PLAIN if self._tracking and self._clicks else _PLAIN_PAGE
        # A character of a plain address is one byte.
        is_plain = link.str.contains(pattern) & _is_short(link) & ~link.str.contains(_PRIVATE)
        inputs = [link.alias("link"), is_plain.alias("link_is_plain")]
        if self._tracked:
            inputs.append(link.str.contains(self._tracked).alias("link_is_tracked"))
        return inputs

    def unwrap(self, cells: pl.DataFrame) -> pl.DataFrame:
        """Replace tracked links by their landing pages, where columns can read those."""
        if "link_is_tracked" not in cells.columns:
            return cells
        places = cells["link_is_tracked"].arg_true()
        if not len(places):
            return cells
        links = cells["link"].gather(places)
        landing = pl.DataFrame({"landing": self._landings(links), "given": links})
        seen = landing.select(self.inputs(pl.col("landing")))
        # A tracked link that names no landing page stands for itself.
        is_plain = seen["link_is_plain"] & ~(seen["link_is_tracked"] & (landing["landing"] != landing["given"]))
        return cells.with_columns(
            replace_at(cells["link"], places, landing["landing"]),
            replace_at(cells["link_is_plain"], places, is_plain),
        )

    def read_plain(self, links: pl.Series) -> list[pl.Series]:
        """Return `url` to show, `identity` and `link_identity` of each link, which are right where it is plain."""
        frame = links.to_frame().lazy()
        traits = _Traits(**collect(frame.select(self._traits)).row(0, named=True))
        if not any(traits):
            return collect(frame.select(_AS_GIVEN)).get_columns()
        patterns = (self._tracking, self._clicks) if traits.tracking else (None, None)
        for step in _split(*patterns, has_fragments=traits.fragments):
            frame = frame.with_columns(step)
        parts = collect(frame)
        ordered = _ordered(parts["kept"]).alias("ordered")
        # Where nothing is dropped from a link except click parameters, the two are the same.
        is_one = not traits.tracking or (parts["kept"] == parts["shown"]).all()
        shown = ordered if is_one else _ordered(parts["shown"])
        whole = parts.lazy().with_columns(ordered, shown.alias("shown_ordered")).select(_JOINED)
        return collect(whole).get_columns()

    def read_odd(self, texts: list[str]) -> pl.DataFrame:
        """Return the same for links that are not plain, and the `fault` of those that are invalid."""
        rows = []
        for text in texts:
            try:
                rules = self._rules
                row = canonical_url(text, rules), identity_url(text, rules), link_identity(text, rules), 0
            except Rejected as refusal:
                row = "", "", "", NUMBER[refusal.fault]
            rows.append(row)
        return pl.DataFrame(rows, schema=_ODD, orient="row")

    def _landings(self, links: pl.Series) -> pl.Series:
        """Return the landing page in each tracked link.

        That is the link itself if it names none, and an empty text, which is not plain, if the kernel has to find it.
        """
        if not self._landing_parameters:
            return links
        query = links.str.replace("?", "&", literal=True)
        names_some = query.str.contains_any(self._landing_parameters)
        # The path is compared without slashes at its end, and in its normal form.
        usable = links.str.contains(self._tracked_link) & ~links.str.contains("/?", literal=True)
        usable &= links.str.contains(rf"\A{_ORIGIN}{_PATH}\?") & (links.str.len_bytes() <= LONGEST_URL)
        usable &= ~links.str.contains(_PRIVATE)
        parameter = self._landing_parameters[0]
        rest = query.str.splitn(parameter, 2).struct.field("field_1").fill_null("")
        landing = rest.str.splitn("&", 2).struct.field("field_0").str.replace_many(_ESCAPES)
        again = landing.str.contains(rf"\A{_STILL_ENCODED}")
        if again.any():
            landing = landing.zip_with(~again, landing.str.replace_many(_ESCAPES))
        usable_once = usable & ~rest.str.contains(parameter, literal=True)
        return landing.zip_with(usable_once, pl.Series([""])).zip_with(names_some | ~usable, links)


def is_surely_web(text: pl.Expr) -> pl.Expr:
    """Return which texts are certainly addresses of the public web."""
    return text.str.contains(_WEB) & _is_short(text) & ~text.str.contains(_PRIVATE)


def read_odd_addresses(surely: pl.Series, texts: pl.Series, rules: LinkRules) -> pl.Series:
    """Return which texts are addresses of the public web or allowed networks; the kernel reads those not `surely`."""
    places = (~surely).arg_true()
    read = partial(is_public_url, rules=rules)
    return replace_at(surely, places, map_values(texts.gather(places), read, pl.Boolean()))


def _is_short(text: pl.Expr) -> pl.Expr:
    return text.str.len_bytes() <= LONGEST_URL


def _parameters(names: frozenset[str], prefixes: tuple[str, ...], kept: frozenset[str]) -> str | None:
    """Return a pattern of parameters that are dropped; None if no pattern can exclude those that are kept."""
    if any(name.startswith(prefixes) for name in kept):
        return None
    return f"(?:{any_of(names - kept)}|{any_of(prefixes)}[^=&]*)=[^&]*"


@cache
def _split(tracking: str | None, clicks: str | None, *, has_fragments: bool) -> list[list[pl.Expr]]:
    """Return the steps from `link` to `page`, `query`, `fragment`, and its parameters with an ampersand before each.

    The parameters in `kept` are part of the identity, those in `shown` of the address that is shown.
    """
    before, after = (pl.col("link").str.splitn("#", 2).struct.field(field) for field in ("field_0", "field_1"))
    page_and_query = (before if has_fragments else pl.col("link")).str.splitn("?", 2)
    fragment = ("#" + after).fill_null("") if has_fragments else pl.lit("")
    pairs = pl.when(pl.col("query") != "").then("&" + pl.col("query")).otherwise(pl.lit(""))
    kept, shown = (pairs.str.replace_all(f"(?i)&{pattern}", "") if pattern else pairs for pattern in (tracking, clicks))
    return [
        [page_and_query.struct.rename_fields(["page", "query"]).struct.unnest(), fragment.alias("fragment")],
        [kept.alias("kept"), shown.alias("shown")],
    ]


def _ordered(pairs: pl.Series) -> pl.Series:
    """Return the parameters in their order, with one spelling for blanks."""
    spelled = pairs.str.replace_all("+", "%20", literal=True)
    # Sorting costs more than everything else, and most addresses have at most one parameter.
    places = (spelled.str.count_matches("&", literal=True) > 1).arg_true()
    if not len(places):
        return spelled
    several = spelled.gather(places).str.slice(1).str.split("&").list.sort().list.join("&")
    return replace_at(spelled, places, "&" + several)


def _join(page: pl.Expr, pairs: pl.Expr) -> pl.Expr:
    return page + pl.when(pairs != "").then("?" + pairs.str.slice(1)).otherwise(pl.lit(""))


def _joined() -> list[pl.Expr]:
    """Return the address to show, unchanged if nothing was dropped, and the identities of the page and the link."""
    page, query, shown = pl.col("page"), pl.col("query"), pl.col("shown")
    is_whole = query.is_null() | (shown.str.len_bytes() > query.str.len_bytes())
    url = pl.when(is_whole).then("link").otherwise(_join(page, shown) + pl.col("fragment"))
    place = _without_scheme(page).str.strip_chars_end("/")
    identity, link = (_join(place, pl.col(name)) for name in ("ordered", "shown_ordered"))
    return [url.alias("url"), identity.alias("identity"), link.alias("link_identity")]


def _without_scheme(link: pl.Expr) -> pl.Expr:
    return link.str.strip_prefix("https://").str.strip_prefix("http://")


_AS_GIVEN: Final = [
    pl.col("link").alias("url"),
    *(_without_scheme(pl.col("link")).alias(name) for name in ("identity", "link_identity")),
]
_JOINED: Final = _joined()
