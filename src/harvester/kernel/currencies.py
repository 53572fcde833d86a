"""The currencies of ISO 4217 that goods are sold in, and the signs that stand for them.

Left out: precious metals, funds, units of account, and what was withdrawn.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.text import trim

_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_TWO_DECIMALS = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC
    CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD
    KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO
    NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL
    THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG
"""
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"

#: Code of a currency -> how many decimals its amounts have.
MINOR_UNITS: Mapping[str, int] = MappingProxyType(
    {
        code: decimals
        for codes, decimals in ((_NO_DECIMALS, 0), (_TWO_DECIMALS, 2), (_THREE_DECIMALS, 3))
        for code in codes.split()
    }
)
_WRITTEN_WHOLE = """
    AFN ALL AMD AOA ARS CDF COP CRC HUF IDR IQD IRR KHR KPW KZT LAK LBP LKR MGA MMK MNT MWK NGN PKR RSD SDG SOS SSP SYP
    TWD TZS UYU UZS YER
"""
#: Currencies that have decimals on paper while shops write whole amounts: "12.000 HUF" mostly means twelve thousand.
WRITTEN_WHOLE = frozenset(_WRITTEN_WHOLE.split())

_DOLLARS = """
    ARS AUD BBD BMD BND BSD BZD CAD CLP COP CUP CVE DOP FJD GYD HKD JMD KYD LRD MOP MXN NAD NIO NZD SBD SGD SRD TOP
    TTD TWD USD UYU WST XCD
"""
DOLLARS = frozenset(_DOLLARS.split())
#: Sign -> the currencies that it may stand for. Blanks inside a sign are taken out before it is looked up.
SIGNS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "$": DOLLARS,
        "\u00a5": frozenset({"JPY", "CNY"}),
        "\uffe5": frozenset({"JPY", "CNY"}),
        "kr": frozenset({"DKK", "ISK", "NOK", "SEK"}),
        "kr.": frozenset({"DKK", "ISK", "NOK", "SEK"}),
        # Other pounds are written with letters beside the sign, or are at par with sterling: see SIGN_ALONE.
        "\u00a3": frozenset({"EGP", "FKP", "GBP", "GIP", "LBP", "SDG", "SHP", "SSP", "SYP"}),
        "\u20a9": frozenset({"KPW", "KRW"}),
        "\u20ac": frozenset({"EUR"}),
        "\u20b9": frozenset({"INR"}),
        "\u20ba": frozenset({"TRY"}),
        "\u20bd": frozenset({"RUB"}),
        "\u20b4": frozenset({"UAH"}),
        "\u20aa": frozenset({"ILS"}),
        "\u20ab": frozenset({"VND"}),
        "\u20b1": frozenset({"PHP"}),
        "\u20a6": frozenset({"NGN"}),
        "z\u0142": frozenset({"PLN"}),
        "K\u010d": frozenset({"CZK"}),
        "Ft": frozenset({"HUF"}),
        "US$": frozenset({"USD"}),
        "U$S": frozenset({"USD"}),
        "C$": frozenset({"CAD"}),
        "CA$": frozenset({"CAD"}),
        "CDN$": frozenset({"CAD"}),
        "A$": frozenset({"AUD"}),
        "AU$": frozenset({"AUD"}),
        "NZ$": frozenset({"NZD"}),
        "HK$": frozenset({"HKD"}),
        "S$": frozenset({"SGD"}),
        "NT$": frozenset({"TWD"}),
        "MX$": frozenset({"MXN"}),
        "R$": frozenset({"BRL"}),
    }
)
#: Signs of several currencies that mean one of them when nothing else is said.
SIGN_ALONE: Mapping[frozenset[str], str] = MappingProxyType({SIGNS["\u00a3"]: "GBP", SIGNS["\u20a9"]: "KRW"})
#: Codes that are English words too: in a price they count in capitals only.
CODES_LIKE_WORDS = frozenset({"ALL", "CUP", "GEL", "MOP", "TOP", "TRY"})
#: Letters and other signs of a marker such as "USD$", which are looked up one by one.
MARKER_WORDS = "[A-Za-z]+|[^A-Za-z]+"


def currency_code(text: str | None) -> str | None:
    """Read a currency column or a default: a known code in any case, or nothing.

    Raises:
        Rejected: there is something that is no code of a currency in use.
    """
    given = trim(text)
    code = given.upper()
    if not code:
        return None
    # Some letters beyond ASCII, such as the dotless i, have capitals within it; none belongs to a code.
    if code not in MINOR_UNITS or not given.isascii():
        raise Rejected(Fault.CURRENCY_UNKNOWN)
    return code


def named_currencies(*markers: str) -> frozenset[str] | None:
    """The currencies that the markers around a number allow together; none if there is no marker.

    Raises:
        Rejected: a marker is neither a code nor a sign.
    """
    named = [meaning for marker in markers for meaning in _meanings(marker)]
    return frozenset.intersection(*named) if named else None


def _meanings(marker: str) -> list[frozenset[str]]:
    if marker in SIGNS:
        return [SIGNS[marker]]
    return [_meaning(word) for word in re.findall(MARKER_WORDS, marker)]


def _meaning(word: str) -> frozenset[str]:
    if word in SIGNS:
        return SIGNS[word]
    code = word.upper()
    if code in MINOR_UNITS and (word == code or code not in CODES_LIKE_WORDS):
        return frozenset({code})
    looks_like_code = re.fullmatch("[A-Z]{3}", word)
    raise Rejected(Fault.CURRENCY_UNKNOWN if looks_like_code else Fault.PRICE_UNREADABLE)


def agreed_currency(named: frozenset[str] | None, column: str | None, default: str | None) -> str:
    """The one currency that everything said agrees on; the default speaks only where the rest leaves a choice.

    Args:
        named: what the price cell allows, if it names a currency.
        column: the code in the row's own column.
        default: the code that the feed says for rows that name none.

    Raises:
        Rejected: nothing names a currency, or what is said contradicts itself or leaves several.
    """
    if named is None:
        code = column or default
        if not code:
            raise Rejected(Fault.NO_CURRENCY)
        return code
    agreed = named & {column} if column else named
    if not agreed:
        raise Rejected(Fault.CURRENCY_CONTRADICTED)
    if len(agreed) == 1:
        return next(iter(agreed))
    return _choice(agreed, default)


def _choice(agreed: frozenset[str], default: str | None) -> str:
    if default in agreed:
        return str(default)
    if agreed in SIGN_ALONE:
        return SIGN_ALONE[agreed]
    raise Rejected(Fault.CURRENCY_CONTRADICTED if default else Fault.CURRENCY_AMBIGUOUS)
