"""What the title of ammunition says about it. If a title can be read in two ways, the attribute is left out."""

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Attributes:
    """Attributes of ammunition, named as in `ScrapedOffer`."""

    caliber: str | None = None
    grain_weight: int | None = None
    round_count: int | None = None
    case_material: str | None = None
    bullet_type: str | None = None
    load_type: str | None = None
    shell_length: str | None = None


#: Pattern -> the usual name, the longer names first: ".223 Rem" is not "22".
_CALIBERS: Final = tuple(
    (re.compile(rf"(?<![\w.]){pattern}(?![\w.]*\d)", re.IGNORECASE), name)
    for pattern, name in (
        (r"5\.56\s?(?:x\s?45)?\s?(?:mm)?(?:\s?nato)?", "5.56x45mm NATO"),
        (r"\.?223\s?(?:rem(?:ington)?)?(?=\W|$)", ".223 Remington"),
        (r"7\.62\s?x\s?51\s?(?:mm)?(?:\s?nato)?", "7.62x51mm NATO"),
        (r"7\.62\s?x\s?39\s?(?:mm)?", "7.62x39mm"),
        (r"7\.62\s?x\s?54\s?(?:mm)?\s?r", "7.62x54R"),
        (r"5\.45\s?x\s?39\s?(?:mm)?", "5.45x39mm"),
        (r"5\.7\s?x\s?28\s?(?:mm)?", "5.7x28mm"),
        (r"4\.6\s?x\s?30\s?(?:mm)?", "4.6x30mm"),
        (r"6\.5\s?(?:mm\s?)?creed(?:moor)?", "6.5 Creedmoor"),
        (r"6\.5\s?(?:mm\s?)?grendel", "6.5 Grendel"),
        (r"6\.8\s?(?:mm\s?)?spc(?:\s?ii)?", "6.8 SPC"),
        (r"6\s?mm\s?arc", "6mm ARC"),
        (r"6\s?mm\s?creed(?:moor)?", "6mm Creedmoor"),
        (r"\.?224\s?valkyrie", ".224 Valkyrie"),
        (r"\.?22\s?-\s?250(?:\s?rem(?:ington)?)?", ".22-250 Remington"),
        (r"\.?22\s?(?:lr|long\s?rifle)", ".22 LR"),
        (r"\.?22\s?(?:wmr|mag(?:num)?|win(?:chester)?\.?\s?mag(?:num)?)", ".22 WMR"),
        (r"\.?17\s?hmr", ".17 HMR"),
        (r"\.?17\s?wsm", ".17 WSM"),
        (r"\.?204\s?ruger", ".204 Ruger"),
        (r"\.?243\s?win(?:chester)?", ".243 Winchester"),
        (r"\.?25\s?-\s?06(?:\s?rem(?:ington)?)?", ".25-06 Remington"),
        (r"\.?270\s?win(?:chester)?", ".270 Winchester"),
        (r"\.?280\s?rem(?:ington)?", ".280 Remington"),
        (r"7\s?mm\s?-\s?08(?:\s?rem(?:ington)?)?", "7mm-08 Remington"),
        (r"7\s?mm\s?rem(?:ington)?\.?\s?mag(?:num)?", "7mm Remington Magnum"),
        (r"\.?300\s?(?:aac\s?)?(?:blackout|blk)", ".300 Blackout"),
        (r"\.?300\s?win(?:chester)?\.?\s?mag(?:num)?", ".300 Winchester Magnum"),
        (r"\.?300\s?wsm", ".300 WSM"),
        (r"\.?300\s?prc", ".300 PRC"),
        (r"\.?30\s?-\s?06(?:\s?sprg(?:fld)?\.?|\s?springfield)?", ".30-06 Springfield"),
        (r"\.?30\s?-\s?30(?:\s?win(?:chester)?)?", ".30-30 Winchester"),
        (r"\.?30\s?carbine", ".30 Carbine"),
        (r"\.?303\s?british", ".303 British"),
        (r"\.?308\s?(?:win(?:chester)?)?(?=\W|$)", ".308 Winchester"),
        (r"\.?338\s?lapua(?:\s?mag(?:num)?)?", ".338 Lapua Magnum"),
        (r"\.?350\s?legend", ".350 Legend"),
        (r"\.?450\s?bushmaster", ".450 Bushmaster"),
        (r"\.?45\s?-\s?70(?:\s?gov(?:t|ernment)?)?", ".45-70 Government"),
        (r"\.?50\s?bmg", ".50 BMG"),
        (r"\.?25\s?(?:acp|auto)", ".25 ACP"),
        (r"\.?32\s?(?:acp|auto)", ".32 ACP"),
        (r"\.?327\s?fed(?:eral)?\.?(?:\s?mag(?:num)?)?", ".327 Federal Magnum"),
        (r"\.?380\s?(?:acp|auto)", ".380 ACP"),
        (r"9\s?mm\s?mak(?:arov)?|9\s?x\s?18\s?(?:mm)?(?:\s?mak(?:arov)?)?", "9x18mm Makarov"),
        (r"9\s?mm(?:\s?(?:luger|para(?:bellum)?|nato))?|9\s?x\s?19\s?(?:mm)?", "9mm Luger"),
        (r"\.?38\s?super", ".38 Super"),
        (r"\.?38\s?(?:spl|special)", ".38 Special"),
        (r"\.?357\s?sig", ".357 SIG"),
        (r"\.?357\s?mag(?:num)?", ".357 Magnum"),
        (r"\.?40\s?(?:s\s?&\s?w|sw|cal)", ".40 S&W"),
        (r"10\s?mm(?:\s?auto)?", "10mm Auto"),
        (r"\.?41\s?(?:rem(?:ington)?\.?\s?)?mag(?:num)?", ".41 Magnum"),
        (r"\.?44\s?(?:rem(?:ington)?\.?\s?)?mag(?:num)?", ".44 Magnum"),
        (r"\.?44\s?(?:spl|special)", ".44 Special"),
        (r"\.?45\s?(?:long\s?colt|lc|colt)", ".45 Colt"),
        (r"\.?45\s?(?:acp|auto)", ".45 ACP"),
        (r"\.?454\s?casull", ".454 Casull"),
        (r"10\s?(?:ga\.?|gauge)", "10 Gauge"),
        (r"12\s?(?:ga\.?|gauge)", "12 Gauge"),
        (r"16\s?(?:ga\.?|gauge)", "16 Gauge"),
        (r"20\s?(?:ga\.?|gauge)", "20 Gauge"),
        (r"28\s?(?:ga\.?|gauge)", "28 Gauge"),
        (r"\.?410\s?(?:bore|ga\.?|gauge)?(?=\W|$)", ".410 Bore"),
    )
)
#: Two names of one chamber in one title are one caliber: "5.56 NATO / .223" is not, it fits both and is left out.
_GRAIN: Final = re.compile(r"(?<![\d.])(\d{2,3})\s?-?\s?(?:grains?|grs?|gn)\b\.?", re.IGNORECASE)
_ROUNDS: Final = re.compile(
    r"(?<![\d.,/-])(\d{1,2},\d{3}|\d{1,5})\s?-?\s?(?:rounds?|rds?|rnds?|cartridges?|shells?|shot\s?shells?|cts?|count)\b",
    re.IGNORECASE,
)
_BOXED: Final = re.compile(
    r"(?:boxe?s?|cases?|packs?|bricks?|cans?)\s(?:of\s)?(\d{1,5})(?![\d.,]|\s?(?:boxes|packs|cases|bricks|gr|ga|mm|x\b))",
    re.IGNORECASE,
)
#: Words of a multiple: which of the numbers counts is not certain.
_MULTIPLE: Final = re.compile(
    r"\d+\s?(?:boxes|packs|bricks|cans|cases)\b|\bboxes\sof\b|\d+\s?x\s?\d+\s?(?:rd|round)|per\s(?:box|case|pack)|/\s?(?:box|case|bx|cs)\b|"
    r"\b(?:up\sto|buy|free|bonus|plus)\b|rounds?\s?/\s?\d",
    re.IGNORECASE,
)
_CASES: Final = (
    ("Nickel-Plated Brass", re.compile(r"nickel(?:[\s-]plated)?\s(?:brass|cases?d?)", re.IGNORECASE)),
    ("Brass", re.compile(r"\bbrass(?:[\s-]cased?)?\b", re.IGNORECASE)),
    ("Steel", re.compile(r"\bsteel[\s-]?cased?\b", re.IGNORECASE)),
    ("Aluminum", re.compile(r"\balumini?um(?:[\s-]cased?)?\b", re.IGNORECASE)),
    ("Polymer", re.compile(r"\bpolymer[\s-]cased?\b", re.IGNORECASE)),
)
_BULLETS: Final = (
    ("FMJBT", re.compile(r"\bfmj[\s-]?(?:bt\b|boat)|full\smetal\sjacket\sboat", re.IGNORECASE)),
    ("TMJ", re.compile(r"\btmj\b|total\smetal\sjacket", re.IGNORECASE)),
    ("FMJ", re.compile(r"\bfmj\b(?![\s-](?:bt\b|boat))|full\smetal\sjacket(?!\sboat)", re.IGNORECASE)),
    (
        "BTHP",
        re.compile(r"\bbthp\b|\bhpbt\b|boat[\s-]?tail\shollow\spoint|hollow\spoint\sboat[\s-]?tail", re.IGNORECASE),
    ),
    ("JHP", re.compile(r"\bjhp\b|jacketed\shollow\s?point", re.IGNORECASE)),
    ("HP", re.compile(r"\bhp\b|(?<!jacketed\s)(?<!tail\s)\bhollow[\s-]?point\b(?!\sboat)", re.IGNORECASE)),
    ("JSP", re.compile(r"\bjsp\b|jacketed\ssoft\s?point", re.IGNORECASE)),
    ("SP", re.compile(r"\bsp\b|(?<!jacketed\s)\bsoft[\s-]?point\b", re.IGNORECASE)),
    ("LRN", re.compile(r"\blrn\b|lead\sround\snose", re.IGNORECASE)),
    ("OTM", re.compile(r"\botm\b|open\stip\smatch", re.IGNORECASE)),
    ("Ballistic Tip", re.compile(r"ballistic\stip|polymer\stip", re.IGNORECASE)),
    ("Frangible", re.compile(r"\bfrangible\b", re.IGNORECASE)),
)
_LOADS: Final = (
    re.compile(r"(?<![\d.])#\s?(\d(?:\s?1/2|\.5)?)(?:\s?shot)?(?![\d/.])", re.IGNORECASE),
    re.compile(r"\bno\.?\s(\d(?:\.5)?)\s?(?:shot|buck(?:shot)?)\b", re.IGNORECASE),
    re.compile(r"\b(0{1,3}\s?buck(?:shot)?|#?\d\s?buck(?:shot)?|slugs?|bb|bbb)\b", re.IGNORECASE),
)
_LENGTH: Final = re.compile(
    r"(?<![\d./-])([23](?:\s?-?\s?[13]/[24]|\.5|\.75)?)\s?(?:\"|''|\u2033|\u201d|-?\s?in(?:ch)?\b)", re.IGNORECASE
)
_GAUGE: Final = re.compile(r"\b\d\d\s?(?:ga\b|gauge)|(?<!\d)\.?410\b", re.IGNORECASE)
MOST_ROUNDS: Final = 50_000


def attributes_of(title: str) -> Attributes:
    """Return what a title says; nothing for titles of other goods."""
    caliber = _caliber(title)
    if caliber is None and not _GRAIN.search(title) and not _ROUNDS.search(title):
        return Attributes()
    is_shotgun = bool(_GAUGE.search(title))
    grains = {int(match[1]) for match in _GRAIN.finditer(title)}
    lengths = (
        {match[1].replace(" ", "").replace("-", " ") for match in _LENGTH.finditer(title)} if is_shotgun else set()
    )
    return Attributes(
        caliber=caliber,
        grain_weight=grains.pop() if len(grains) == 1 else None,
        round_count=_rounds(title),
        case_material=_only(name for name, pattern in _CASES[1:] if pattern.search(title))
        if not _CASES[0][1].search(title)
        else _CASES[0][0],
        bullet_type=None if is_shotgun else _only(name for name, pattern in _BULLETS if pattern.search(title)),
        load_type=_load(title) if is_shotgun else None,
        shell_length=f'{lengths.pop()}"' if len(lengths) == 1 else None,
    )


def _only(names: object) -> str | None:
    found = list(names)  # type: ignore[call-overload]
    return found[0] if len(found) == 1 else None


def _caliber(title: str) -> str | None:
    found: list[tuple[int, int, str]] = []
    for pattern, name in _CALIBERS:
        match = pattern.search(title)
        if match and not any(start < match.end() and match.start() < end for start, end, _ in found):
            found.append((match.start(), match.end(), name))
    return found[0][2] if len({name for _, _, name in found}) == 1 else None


def _rounds(title: str) -> int | None:
    """Return the number of rounds if the title has one number only that can be it."""
    if _MULTIPLE.search(title):
        return None
    counts = {int(match[1].replace(",", "")) for pattern in (_ROUNDS, _BOXED) for match in pattern.finditer(title)}
    count = counts.pop() if len(counts) == 1 else 0
    return count if 0 < count <= MOST_ROUNDS else None


def _load(title: str) -> str | None:
    found = {" ".join(match[1].lower().split()) for pattern in _LOADS for match in pattern.finditer(title)}
    if len(found) != 1:
        return None
    load = found.pop()
    return (
        f"#{load}"
        if load[0].isdigit() and "buck" not in load
        else load.replace("buckshot", "buck").replace("slugs", "slug").title()
    )
