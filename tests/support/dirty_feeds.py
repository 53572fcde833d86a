"""Feeds with everything in them that partners have been seen to send, and what nobody has seen yet."""

import random

from harvester.kernel.gtin import with_check_digit

TITLES = [
    "Federal 9mm 50rd",
    "Caf\u00e9 crema",
    '5" nail',
    'He said "hi"',
    '"quoted"',
    "a, b; c | d",
    "\u65e5\u672c",
    " x ",
    "x\u00a0",
]
BLANK = ["", " ", "\u00a0", "\u200b ", "\ufeff"]
HOSTS = [
    "shop.example",
    "www.shop.example",
    "Shop.Example",
    "shop.example:443",
    "shop.example:8080",
    "m\u00fcnchen.example",
]
PATHS = [
    "",
    "/",
    "/p/1",
    "/P/1/",
    "/a%20b",
    "/a%2fb",
    "/%7Euser",
    "/caf\u00e9",
    "/a b",
    "/a//",
    "/a%zz",
    "/a+b",
    "/c/1/2/3",
    "/x;y=1",
]
QUERIES = [
    *("", "?", "?sku=1", "?b=2&a=1", "?a=1&b=2", "?utm_source=x", "?utm_source=x&sku=2", "?sku=2&UTM_Medium=y&a=3"),
    *("?ref=1", "?reference=1", "?affid=3&p=1", "?a", "?a=", "?=b", "?a=1&&b=2", "?a=x+y", "?a=x%20y", "?a+b=1"),
    *("?a=%2B", "?a=1?b=2", "?id=1&pid=2&id=0", "?intsrc=CATF_1&ir_x=2&x=1", "?%75tm_source=1", "?a=\u00e9", "?a=b=c"),
]
FRAGMENTS = ["", "", "", "#top", "#a?b=1", "#", "#a b"]
LINKS = [
    *("", " ", "n/a", "ftp://shop.example/x", "//shop.example/p", "https://", "https:///p", "shop.example/p/1"),
    *("https://user@shop.example/p", "https://shop.example:99999/", "https://sho p.example/", "https://-x.example/"),
    *("https://shop.example\\p", "HTTPS://shop.example/p", " https://shop.example/p/1 ", "https://a..b/"),
    *("https://[::1]/p", "https://[bad/", "https://shop.example./p", "https://x" + "y" * 70 + ".example/"),
    *("http://localhost:3000/p", "http://intranet/p", "https://nas.local/p", "http://127.0.0.1/p", "http://10.1.2.3/p"),
    *("http://127.1/p", "http://2130706433/p", "http://0x7f.1/p", "http://256.256.256.256/p", "http://93.184.216.34/p"),
    *("https://shop.localhost", "https://shop.internal?a=1", "https://shop.local.example/p", "https://shop.1e/p"),
    "https://shop.example/" + "x" * 4100,
]
TRACKED = ["https://brand.sjv.io/c/1/2/3", "https://goto.brand.example/c/11/22/33/", "http://brand.pxf.io/c/9/8/7"]
LANDINGS = [
    *("https%3A%2F%2Fshop.example%2Fp%2F1", "https%3a%2f%2fshop.example%2fp%2f1%3fsku%3d2", "https://shop.example/p/1"),
    *(
        "https%253A%252F%252Fshop.example%252Fp%252F1%253Futm_source%253Dx",
        "nonsense",
        "",
        "https%3A%2F%2FSHOP.example",
    ),
    *(
        "https%3A%2F%2Fbrand.sjv.io%2Fc%2F1%2F2%2F3%3Fu%3Dhttps%253A%252F%252Fshop.example%252Fdeep",
        "%68ttps://x.example",
    ),
    *("https%3A%2F%2Fshop.example%2Fa%2Bb%3Fq%3D1%262", "https%25253A%25252F%25252Fshop.example", "ftp%3A%2F%2Fx"),
    *(
        "https%3A%2F%2Fshop.example%2Fa+b",
        "https%3A%2F%2Fshop.example%2Fp%23top",
        "https%3A%2F%2Fshop.example%2Fc%2F1%2F2%2F3",
    ),
]
PRICES = [
    *(
        "19.99",
        "5",
        "0",
        "0.00",
        "",
        " ",
        "1299.00",
        "$1,299.00",
        "1.299,00",
        "19.99 USD",
        "GBP 349.00",
        "12,12",
        "1.226",
    ),
    *(
        "1,226",
        "1 299,00 \u20ac",
        "-5",
        "(5.00)",
        "NaN",
        "1e309",
        "inf",
        "free",
        "$0.00",
        "\u00a312",
        "19.99 XXX",
        ".99",
    ),
    *(
        "$.99",
        "19.999",
        "12345678901",
        "9999999999.99",
        "1'299.50",
        "19.90 eur",
        "\u00a51200",
        "1200 JPY",
        "1,234,567.89",
    ),
    *(
        "kr.50",
        "US$ 5.00",
        "5.00 CAD",
        "0.500 KWD",
        "\u0661\u0662",
        "19.99.99",
        "$ 5 .00",
        "5-",
        "10.00\u00a0USD",
        "x" * 65,
    ),
    *(
        "12.99 euros",
        "Euro 12.99",
        "Rs 1,299",
        "1,29,900.00 INR",
        "12.99*",
        "1.299,-",
        "129:-",
        "129,\u2013",
        "12.99,-",
    ),
    *(
        "RM12.90",
        "Fr. 12.90",
        "$119. 95",
        "$426.20/EA",
        "$4.20/LB",
        "from 12.99",
        "10 - 20",
        "12.99 each",
        "12.99 EUR.",
    ),
    *(
        "Price: $12.99",
        "12,99 \u20ac inkl. MwSt.",
        "12.99+",
        "12.000 HUF",
        "12,000 JPY",
        "5 kr.",
        "Rs.5",
        "\u20ac\u00a05,-",
    ),
]
CURRENCIES = [
    *("USD", "USD", "USD", "usd", " EUR ", "", "", "JPY", "KWD", "XXX", "Dollar", "CAD", "\u0131nr", "\u20ac", "US$"),
    *("euros", "$", "kr", "INR", "\u00a3", "Rs"),
]
STOCKS = [
    "InStock",
    "OutofStock",
    "in_stock",
    "pre-order",
    "Y",
    "0",
    "",
    "maybe",
    "Limited Availability",
    "sold out",
    "\u00a0yes",
    "-1",
    "5",
    "0.0",
    "In Stock (5)",
    "0 in stock",
    "Out of Stock.",
    "https://schema.org/InStock",
    "2024-05-01",
    "not available",
]
GTINS = [
    "",
    "0" * 12,
    "12345",
    "8.85E+11",
    "n/a",
    "-",
    " ",
    "40170725",
    "4017-0725",
    "'4006381333931",
    "0306406152",
    "UPC 020892215513",
    "EAN-13: 4006381333931",
    "ISBN 080442957X",
    "080442957X",
    "x" * 70,
]
SKUS = [
    "A-1",
    "a-1",
    "A-2",
    " B 3 ",
    "",
    "n/a",
    "NULL",
    "x" * 255,
    "y" * 256,
    "tab\x0bs",
    "\u202ex",
    "0",
    "\u00e9" * 200,
]
IMAGES = [
    "https://cdn.example/1.jpg",
    "",
    "cdn.example/1.jpg",
    "https://cdn.example/a b.jpg",
    "http://CDN.example:80/x",
    "data:image/png;x",
]
PERIODS = [
    "",
    "",
    "2024-01-01T00:00Z/2024-12-31T23:59Z",
    "2020-01-01T00:00-0800/2020-02-01T00:00-0800",
    "soon",
    "2024-01-01/2025-01-01",
]
NASTY = "\"',;|.%&=?#/\\+-_ \u00a0\u200b\u2028\u202e\x0b\x1f\x7f\u00e9\u0130\u0131\ufb01$\u20ac0159AZaz@:[]()"


def dirty_row(rng, header):
    """One value for each column."""
    return [_dirtied(rng, _value(rng, name)) for name in header]


def _value(rng, name):
    kind = KINDS.get(name.lower().replace(" ", "").replace("_", ""))
    return kind(rng) if kind else rng.choice(["", "x", "0.5", "Text"])


def _dirtied(rng, value):
    if rng.random() > 0.04:
        return value
    for _ in range(rng.randint(1, 3)):
        place = rng.randint(0, len(value))
        value = value[:place] + rng.choice(NASTY) + value[place + rng.randint(0, 1) :]
    return value


def _title(rng):
    return rng.choice(BLANK) if rng.random() < 0.03 else f"{rng.choice(TITLES)} {rng.randint(1, 99)}"


def _link(rng):
    if rng.random() < 0.06:
        return rng.choice(LINKS)
    if rng.random() < 0.3:
        extra = rng.choice(["?", "?prodsku=1&", "?x=%2&", "?U=1&", "?u&", "?%75=https://y.example&"])
        tail = rng.choice(["", "", "&intsrc=CATF_1", "&u=https://z.example", "#f"])
        return f"{rng.choice(TRACKED)}{extra}{rng.choice(['u=', 'u=', 'u=', 'v='])}{rng.choice(LANDINGS)}{tail}"
    host = rng.choice(HOSTS) if rng.random() < 0.3 else "shop.example"
    scheme = rng.choice(["https", "https", "http"])
    number = rng.randint(1, 500)
    return f"{scheme}://{host}{rng.choice(PATHS)}{number}{rng.choice(QUERIES)}{rng.choice(FRAGMENTS)}"


def _price(rng):
    if rng.random() < 0.6:
        return f"{rng.randint(0, 200000) / 100:.2f}"
    if rng.random() < 0.2:
        text = "".join(rng.choices("0123456789.,' $\u20acUSDkr-()", k=rng.randint(1, 9)))
        return text + rng.choice(["", "", " USD", " EUR"])
    return rng.choice(PRICES)


def _gtin(rng):
    if rng.random() < 0.3:
        return rng.choice(GTINS)
    digits = "".join(rng.choices("0123456789", k=rng.choice([7, 10, 11, 11, 12, 13])))
    return with_check_digit(digits) if rng.random() < 0.8 else digits


def _sku(rng):
    return rng.choice(SKUS) if rng.random() < 0.2 else f"SKU-{rng.randint(1, 3000)}"


def _text(rng):
    return rng.choice([*BLANK, "Brand", " Brand ", "Sporting Goods > Ammo", "d" * 300, "<p>a &amp; b</p>"])


def _one_of(values):
    return lambda rng: rng.choice(values)


KINDS = {
    **dict.fromkeys(["productname", "title", "name"], _title),
    **dict.fromkeys(["url", "producturl", "link", "originalurl", "canonicallink"], _link),
    **dict.fromkeys(["price", "saleprice", "currentprice", "originalprice", "listprice", "msrp"], _price),
    **dict.fromkeys(["gtin", "upc", "ean", "isbn"], _gtin),
    **dict.fromkeys(["sku", "uniquemerchantsku", "id", "catalogitemid"], _sku),
    **dict.fromkeys(["mpn", "manufacturer", "brand", "category", "description", "promotions", "producttype"], _text),
    **dict.fromkeys(["imageurl", "imagelink"], _one_of(IMAGES)),
    "currency": _one_of(CURRENCIES),
    **dict.fromkeys(["stockavailability", "availability"], _one_of(STOCKS)),
    "salepriceeffectivedate": _one_of(PERIODS),
}


def write_feed(rng, header, rows, *, delimiter, quoting, line_end="\n", damage=0.02):
    """The bytes of a feed in UTF-8. Quoting is "none", "needed" or "all"."""
    lines = [_written(header, delimiter, quoting)]
    for row in rows:
        lines.append(_damaged(rng, _written(row, delimiter, quoting), delimiter, damage))
        if rng.random() < damage / 4:
            lines.append(rng.choice([b"", b"  ", b"\r"]))
    return line_end.encode().join([*lines, b""])


def _written(row, delimiter, quoting):
    return delimiter.join(_cell(text, delimiter, quoting) for text in row).encode()


def _cell(text, delimiter, quoting):
    if quoting == "none":
        return text.replace(delimiter, " ").replace("\n", " ").replace("\r", " ")
    if quoting == "all" or any(mark in text for mark in f'{delimiter}"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _damaged(rng, line, delimiter, damage):
    if rng.random() >= damage:
        return line
    place = rng.randint(0, len(line))
    mark = delimiter.encode()
    wrong = rng.choice([mark, mark + mark, b"\x00", b"\xff", b"\xc3", b'"', b'""', b"\n", b'"\n', b"\r"])
    if rng.random() < 0.3:
        return line.replace(mark, b"", 1)
    return line[:place] + wrong + line[place:]


def seeded(seed):
    return random.Random(seed)
