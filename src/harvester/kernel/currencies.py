"""The currencies of ISO 4217 that goods are sold in, and their signs and names.

Left out: precious metals, funds, units of account, and withdrawn currencies.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.text import BLANKS, trim

_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_TWO_DECIMALS = """
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC
    CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD
    KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO
    NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL
    THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG
"""
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"

#: Currency code -> number of decimals.
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
#: Currencies that officially have decimals while shops write whole amounts: "12.000 HUF" mostly means twelve thousand.
WRITTEN_WHOLE = frozenset(_WRITTEN_WHOLE.split())

_DOLLARS = """
    ARS AUD BBD BMD BND BSD BZD CAD CLP COP CUP CVE DOP FJD GYD HKD JMD KYD LRD MOP MXN NAD NIO NZD SBD SGD SRD TOP
    TTD TWD USD UYU WST XCD
"""
DOLLARS = frozenset(_DOLLARS.split())
_RUPEES = frozenset({"INR", "LKR", "MUR", "NPR", "PKR", "SCR"})
#: Sign -> the currencies that it may stand for; case counts, blanks are left out.
SIGNS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "$": DOLLARS,
        "\u00a5": frozenset({"JPY", "CNY"}),
        "\uffe5": frozenset({"JPY", "CNY"}),
        "kr": frozenset({"DKK", "ISK", "NOK", "SEK"}),
        "kr.": frozenset({"DKK", "ISK", "NOK", "SEK"}),
        # Other pounds are written with letters next to the sign, or are at par with sterling: see SIGN_ALONE.
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
        "\u0e3f": frozenset({"THB"}),
        "\u20a1": frozenset({"CRC"}),
        "\u20b2": frozenset({"PYG"}),
        "\u20b5": frozenset({"GHS"}),
        "\u20b8": frozenset({"KZT"}),
        "Kr": frozenset({"DKK", "ISK", "NOK", "SEK"}),
        "Kr.": frozenset({"DKK", "ISK", "NOK", "SEK"}),
        "Rs": _RUPEES,
        "Rs.": _RUPEES,
        "RS": _RUPEES,
        "Rp": frozenset({"IDR"}),
        "Rp.": frozenset({"IDR"}),
        "RM": frozenset({"MYR"}),
        # Other francs are written with more letters. "fr." in small letters may mean "from".
        "Fr": frozenset({"CHF"}),
        "Fr.": frozenset({"CHF"}),
        "SFr": frozenset({"CHF"}),
        "SFr.": frozenset({"CHF"}),
        "lei": frozenset({"MDL", "RON"}),
        "TL": frozenset({"TRY"}),
        "GB\u00a3": frozenset({"GBP"}),
        "UK\u00a3": frozenset({"GBP"}),
        "&pound;": frozenset({"GBP"}),
        "&euro;": frozenset({"EUR"}),
        "US": frozenset({"USD"}),
        "US$": frozenset({"USD"}),
        "U$S": frozenset({"USD"}),
        "U.S.$": frozenset({"USD"}),
        "C$": frozenset({"CAD"}),
        "CA$": frozenset({"CAD"}),
        "CDN": frozenset({"CAD"}),
        "CDN$": frozenset({"CAD"}),
        "Can$": frozenset({"CAD"}),
        "A$": frozenset({"AUD"}),
        "AU$": frozenset({"AUD"}),
        "NZ$": frozenset({"NZD"}),
        "HK$": frozenset({"HKD"}),
        "S$": frozenset({"SGD"}),
        "SG$": frozenset({"SGD"}),
        "NT$": frozenset({"TWD"}),
        "MX$": frozenset({"MXN"}),
        "R$": frozenset({"BRL"}),
    }
)
#: Signs of several currencies that mean one of them when nothing else names a currency.
SIGN_ALONE: Mapping[frozenset[str], str] = MappingProxyType({SIGNS["\u00a3"]: "GBP", SIGNS["\u20a9"]: "KRW"})
#: Codes that are also English words: in a price they count in capitals only.
CODES_LIKE_WORDS = frozenset({"ALL", "CUP", "GEL", "MOP", "TOP", "TRY"})
#: Pence, a hundredth of the pounds that the same letters mean in any other case.
PENCE = "GBp"
#: Name in lower case without blanks -> the currencies that it may stand for.
NAMES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        spelling: frozenset(codes.split())
        for spellings, codes in (
            ("euro euros", "EUR"),
            ("dollar dollars", _DOLLARS),
            ("usdollar usdollars u.s.dollar u.s.dollars americandollars unitedstatesdollar", "USD"),
            ("canadiandollar canadiandollars", "CAD"),
            ("australiandollar australiandollars", "AUD"),
            ("newzealanddollar newzealanddollars", "NZD"),
            ("hongkongdollar hongkongdollars", "HKD"),
            ("singaporedollar singaporedollars", "SGD"),
            ("pound pounds", "EGP FKP GBP GIP LBP SDG SHP SSP SYP"),
            ("poundsterling poundssterling sterling britishpound britishpounds ukpounds", "GBP"),
            ("rupee rupees", "INR LKR MUR NPR PKR SCR"),
            ("indianrupee indianrupees", "INR"),
            ("swissfranc swissfrancs", "CHF"),
            ("yen japaneseyen", "JPY"),
            ("yuan renminbi rmb", "CNY"),
            ("zloty zlotys z\u0142oty z\u0142otych", "PLN"),
            ("kronor", "SEK"),
            ("kroner", "DKK NOK"),
            ("peso pesos", "ARS CLP COP CUP DOP MXN PHP UYU"),
            ("mexicanpeso mexicanpesos", "MXN"),
            ("real reais", "BRL"),
            ("forint", "HUF"),
            ("ringgit", "MYR"),
            ("baht", "THB"),
            ("rand", "ZAR"),
            ("shekel shekels", "ILS"),
        )
        for spelling in spellings.split()
    }
)
#: A word, or one character that is not a letter; blanks only separate.
_LETTERS = "A-Za-z\u00c0-\u024f\u0370-\u04ff"
_TOKENS = f"[{_LETTERS}]+|[^{_LETTERS} ]"
#: "U.S. dollars" are five of them, and "i.v.a. incluido" seven.
_MOST_TOKENS = 7
#: No name of a currency needs more.
_LONGEST_NAME = 64
_NOTHING: frozenset[str] = frozenset()
_ONE_BLANK = dict.fromkeys(map(ord, BLANKS), " ")
_PARENTHESES = dict.fromkeys(map(ord, "()"), " ")


def currency_code(text: str | None) -> str | None:
    """Return the currency code in a setting or a parameter, whatever its case; none if it is blank.

    Raises:
        Rejected: it is not the code of a currency in use.
    """
    given = trim(text)
    code = given.upper()
    if not code:
        return None
    # Some non-ASCII letters, such as the dotless i, have ASCII capitals.
    if code not in MINOR_UNITS or not given.isascii():
        raise Rejected(Fault.CURRENCY_UNKNOWN)
    return code


def column_currencies(text: str | None) -> frozenset[str] | None:
    """Return the currencies that a cell of a currency column allows: codes, signs and names; none if it is blank.

    Raises:
        Rejected: a part of it is not a currency.
    """
    given = trim(text)
    if not given:
        return None
    if given.isascii() and given.upper() in MINOR_UNITS and given != PENCE:
        return frozenset({given.upper()})
    try:
        named = named_currencies(given.translate(_ONE_BLANK)) if len(given) <= _LONGEST_NAME else None
    except Rejected:
        named = None
    if named is None:
        raise Rejected(Fault.CURRENCY_UNKNOWN)
    return named


def named_currencies(marker: str, passed_over: frozenset[str] = _NOTHING) -> frozenset[str] | None:
    """Return the currencies that all words and signs of a marker allow together; none if it names no currency.

    Args:
        marker: the text before or after a number, with plain blanks.
        passed_over: phrases to ignore, in lower case without blanks.

    Raises:
        Rejected: a part of the marker is neither a currency nor one of these phrases.
    """
    if marker.count("(") != marker.count(")"):
        raise Rejected(Fault.PRICE_UNREADABLE)
    tokens = re.findall(_TOKENS, marker.translate(_PARENTHESES))
    named = []
    while tokens:
        for count in range(min(len(tokens), _MOST_TOKENS), 0, -1):
            phrase = "".join(tokens[:count])
            meaning = _NOTHING if phrase.lower() in passed_over else _meaning(phrase)
            if meaning is not None:
                break
        else:
            looks_like_code = re.fullmatch("[A-Z]{3}", tokens[0])
            raise Rejected(Fault.CURRENCY_UNKNOWN if looks_like_code else Fault.PRICE_UNREADABLE)
        if meaning:
            named.append(meaning)
        tokens = tokens[count:]
        if tokens and tokens[0] == ":":
            tokens = tokens[1:]
    return frozenset.intersection(*named) if named else None


def _meaning(phrase: str) -> frozenset[str] | None:
    """Return the currencies of a sign, a name or a code; none if it is none of these."""
    code = phrase.upper()
    is_written_so = phrase == code or (code not in CODES_LIKE_WORDS and phrase != PENCE)
    if code in MINOR_UNITS and phrase.isascii() and is_written_so:
        return frozenset({code})
    return SIGNS.get(phrase) or NAMES.get(phrase.lower())


def agreed_currency(allowed: Iterable[frozenset[str] | None], default: str | None) -> str:
    """Return the one currency that all sources agree on; the default counts only where they leave a choice.

    Args:
        allowed: the currencies that each part of the price cell and the row's own column allow; none where it names
            none.
        default: the feed's currency for rows that name none.

    Raises:
        Rejected: nothing names a currency, or the sources contradict each other or leave several.
    """
    named = [currencies for currencies in allowed if currencies is not None]
    if not named:
        if not default:
            raise Rejected(Fault.NO_CURRENCY)
        return default
    agreed = frozenset.intersection(*named)
    if not agreed:
        raise Rejected(Fault.CURRENCY_CONTRADICTED)
    if len(agreed) == 1:
        return next(iter(agreed))
    if default in agreed:
        return str(default)
    if agreed in SIGN_ALONE:
        return SIGN_ALONE[agreed]
    raise Rejected(Fault.CURRENCY_CONTRADICTED if default else Fault.CURRENCY_AMBIGUOUS)
