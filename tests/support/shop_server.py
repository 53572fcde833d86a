"""A shop on this machine whose product pages say what a test wants, over real HTTP."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

HOST = "127.0.0.1"


def page(title="Hammer", price="19.99", *, currency="USD", stock="InStock", sku="H-1", **more) -> str:
    """A product page whose structured data and text agree."""
    offer = {"@type": "Offer", "price": price, "priceCurrency": currency, "availability": f"https://schema.org/{stock}"}
    product = {"@context": "https://schema.org", "@type": "Product", "name": title, "sku": sku, "offers": offer, **more}
    script = f'<script type="application/ld+json">{json.dumps(product)}</script>'
    words = {"InStock": "In stock", "OutOfStock": "Out of stock", "PreOrder": "Pre-order"}.get(stock, stock)
    button = (
        "" if stock == "OutOfStock" else f"<button>{'Pre-order' if stock == 'PreOrder' else 'Add to cart'}</button>"
    )
    shown = f'<h1>{title}</h1><p class="price">{price} {currency}</p><p>{words}</p><form>{button}</form>'
    return f"<html><head><title>{title}</title>{script}</head><body>{shown}</body></html>"


class ShopServer:
    """Answers each path with what `pages` has for it: a page, or a status; anything else is 404."""

    def __init__(self) -> None:
        self.pages: dict[str, str | int] = {}
        self.asked: list[str] = []
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                shop.asked.append(self.path)
                found = shop.pages.get(self.path, 404)
                status, body = (200, found) if isinstance(found, str) else (found, "")
                data = body.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_) -> None:
                """Tests print enough."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="shop-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)
