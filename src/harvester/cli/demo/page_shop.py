"""A small shop with product pages: a web server in this process, for this machine only."""

import html
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

HOST: Final = "127.0.0.1"
CURRENCY: Final = "USD"
#: What the shop allows to programs.
ROBOTS: Final = "User-agent: *\nDisallow: /cart\n"
_AVAILABLE: Final = {True: ("InStock", "In stock", "Add to cart"), False: ("OutOfStock", "Out of stock", "")}
_CAPTCHA: Final = (
    "<!doctype html><title>Just a moment...</title><body><h1>Are you a robot?</h1>"
    "<p>Please complete the captcha to continue.</p></body>"
)


@dataclass(frozen=True, kw_only=True)
class Ware:
    """A product of the shop.

    Attributes:
        path: of its page.
        price: of one piece.
        before: the crossed-out price.
        tiers: prices of one piece if more are bought.
        is_in_stock: whether it can be bought.
        look: how its page is built: "usual", "redesigned" or "captcha".
    """

    path: str
    title: str
    sku: str
    price: str
    before: str = ""
    tiers: tuple[tuple[str, str], ...] = ()
    is_in_stock: bool = True
    look: str = "usual"

    def page(self) -> str:
        """Return the page as the shop publishes it."""
        if self.look == "captcha":
            return _CAPTCHA
        schema, stock, button = _AVAILABLE[self.is_in_stock]
        title = html.escape(self.title)
        if self.look == "redesigned":
            # The new template has no structured data, and shows two prices without saying which one counts.
            return (
                f"<!doctype html><html lang='en'><head><title>{title} | Ridge Workshop</title></head><body><main>"
                f"<h1>{title}</h1><p>A light axe for the trail, with a handle of ash and a cover of leather. Every "
                f"head is forged by hand and ground twice, and comes with a guarantee of ten years.</p>"
                f"<div class='p'>${self.price}</div><div class='p'>$51.50</div><p>{stock}</p>"
                f"<form action='/cart'><button type='submit'>{button}</button></form></main></body></html>"
            )
        data = {
            "@context": "https://schema.org",
            "@type": "Product",
            "name": self.title,
            "sku": self.sku,
            "offers": {
                "@type": "Offer",
                "price": self.price,
                "priceCurrency": CURRENCY,
                "availability": f"https://schema.org/{schema}",
            },
        }
        before = f"<del>${self.before}</del> " if self.before else ""
        rows = "".join(f"<tr><td>{count}</td><td>${price}</td></tr>" for count, price in self.tiers)
        tiers = f"<table class='tiers'><tr><th>Quantity</th><th>Each</th></tr>{rows}</table>" if rows else ""
        buy = f"<form action='/cart'><button type='submit'>{button}</button></form>" if button else ""
        return (
            f"<!doctype html><html lang='en'><head><title>{title} | Ridge Workshop</title>"
            f"<script type='application/ld+json'>{json.dumps(data)}</script></head><body><main>"
            f"<h1>{title}</h1><p class='price'>{before}<ins>${self.price}</ins></p><p class='stock'>{stock}</p>"
            f"{buy}{tiers}</main><aside><h2>You may also like</h2>"
            "<a href='/product/gloves'>Work gloves</a> <span>$9.90</span></aside></body></html>"
        )


USUAL: Final = (
    Ware(path="/product/hammer", title="Framing hammer, 20 oz", sku="RW-100", price="19.99"),
    Ware(path="/product/saw", title="Folding saw", sku="RW-110", price="24.50", before="29.00"),
    Ware(
        path="/product/nails", title="Box of nails, 3 in", sku="RW-120", price="6.00",
        tiers=(("1 to 4", "6.00"), ("5 to 9", "5.60"), ("10 or more", "5.20")),
    ),
    Ware(path="/product/lantern", title="Work lantern", sku="RW-130", price="34.00", is_in_stock=False),
    Ware(path="/product/axe", title="Camp axe", sku="RW-140", price="49.00"),
    Ware(path="/product/rope", title="Braided rope, 30 m", sku="RW-150", price="12.75"),
)  # fmt: skip
#: The same shop later: one new price, one page in a new template, and one behind a captcha.
LATER: Final = (
    Ware(path="/product/hammer", title="Framing hammer, 20 oz", sku="RW-100", price="21.49"),
    *USUAL[1:4],
    Ware(path="/product/axe", title="Camp axe", sku="RW-140", price="49.00", look="redesigned"),
    Ware(path="/product/rope", title="Braided rope, 30 m", sku="RW-150", price="12.75", look="captcha"),
)


class PageShop:
    """Serves the pages of the shop.

    Attributes:
        wares: what is on its pages.
    """

    def __init__(self) -> None:
        self.wares: tuple[Ware, ...] = USUAL
        shop = self

        class Pages(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                shop.answer(self)

            def log_message(self, *_: Any) -> None:
                """Print nothing; the demo does."""

        self._server = ThreadingHTTPServer((HOST, 0), Pages)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="demo-shop", daemon=True)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        pages = {ware.path: ware.page() for ware in self.wares}
        path = request.path.partition("?")[0]
        text = ROBOTS if path == "/robots.txt" else pages.get(path, "There is no such page.")
        body = text.encode()
        request.send_response(200 if path == "/robots.txt" or path in pages else 404)
        request.send_header("Content-Type", "text/plain" if path == "/robots.txt" else "text/html; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
