"""A shop on this machine that answers each address with what a test wants, keeps connections, and logs each request."""

import gzip
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

HOST = "127.0.0.1"


@dataclass(kw_only=True)
class Reply:
    """What the shop answers. `act` gets the handler and says it all itself."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    type: str | None = "text/html; charset=utf-8"
    act: Callable[[BaseHTTPRequestHandler], None] | None = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request as the shop saw it: when the request line was there, and when the answer was written."""

    host: str
    path: str
    headers: dict[str, str]
    began: float
    ended: float


def html(text: str | bytes, **headers: str) -> Reply:
    """A page."""
    return Reply(body=text.encode() if isinstance(text, str) else text, headers=named(headers))


def text(body: str, status: int = 200) -> Reply:
    return Reply(status=status, body=body.encode(), type="text/plain")


def status(number: int, **headers: str) -> Reply:
    return Reply(status=number, headers=named(headers))


def moved(number: int, place: str) -> Reply:
    return Reply(status=number, headers={"Location": place})


def acting(act: Callable[[BaseHTTPRequestHandler], None]) -> Reply:
    return Reply(act=act)


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


class ScriptedShop:
    """Answers each path with its reply, or with one after the other of a list, the last one for ever."""

    def __init__(self, replies: dict[str, Reply | list[Reply]] | None = None) -> None:
        self.replies: dict[str, Any] = {"/robots.txt": status(404), **(replies or {})}
        self.log: list[Request] = []
        self.open = 0
        self.most_open = 0
        self._lock = threading.Lock()
        shop = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                shop.answer(self)

            def log_message(self, *_) -> None:
                """Tests print enough."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256
            is_ending = threading.Event()

            def handle_error(self, *_) -> None:
                """Clients that refuse an answer leave in the middle of it."""

        self._server = Server((HOST, 0), Handler)
        self.port = self._server.server_port
        self.url = f"http://{HOST}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="shop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._server.is_ending.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        began = time.monotonic()
        with self._lock:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            reply = self.replies.get(handler.path, status(404))
            if isinstance(reply, list):
                reply = reply.pop(0) if len(reply) > 1 else reply[0]
        try:
            if reply.act:
                handler.close_connection = True
                reply.act(handler)
            else:
                _write(handler, reply)
        finally:
            with self._lock:
                self.open -= 1
                host = handler.headers.get("Host", "")
                headers = {name.lower(): value for name, value in handler.headers.items()}
                ended = time.monotonic()
                self.log.append(Request(host=host, path=handler.path, headers=headers, began=began, ended=ended))

    def asked(self, path: str | None = None) -> list[str]:
        """The paths that were requested, in their order; only this one if given."""
        with self._lock:
            return [seen.path for seen in self.log if path in (None, seen.path)]

    def gaps(self) -> list[float]:
        """Seconds between two requests that follow each other."""
        began = sorted(seen.began for seen in self.log)
        return [later - earlier for earlier, later in itertools.pairwise(began)]


def _write(handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    if "Date" in reply.headers:
        handler.send_response_only(reply.status)
    else:
        handler.send_response(reply.status)
    if reply.type:
        handler.send_header("Content-Type", reply.type)
    for name, value in reply.headers.items():
        handler.send_header(name, value)
    body = b"" if reply.status == 304 else reply.body
    if reply.status != 304:
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def endless(blocks: Iterable[bytes], *, pause: float = 0.0, **headers: str) -> Reply:
    """A page without a length that is sent until the client leaves or the shop closes."""

    def act(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        for name, value in {"Content-Type": "text/html", **named(headers)}.items():
            handler.send_header(name, value)
        handler.end_headers()
        for block in blocks:
            handler.wfile.write(block)
            if handler.server.is_ending.wait(pause):
                return

    return acting(act)


def bomb() -> Reply:
    """A gzip file of 200 KB that becomes 200 MB."""
    packed = gzip.compress(bytes(200_000_000), compresslevel=9)
    return Reply(body=packed, headers={"Content-Encoding": "gzip"})


def product_page(title: str = "Hammer", price: str = "19.99", *, stock: str = "InStock", sku: str = "H-1") -> str:
    """A product page that says the same in its structured data and to people."""
    offer = {
        "@type": "Offer", "price": price, "priceCurrency": "USD", "availability": f"https://schema.org/{stock}"
    }  # fmt: skip
    product = {"@context": "https://schema.org", "@type": "Product", "name": title, "sku": sku, "offers": offer}
    words = {"InStock": "In stock", "OutOfStock": "Out of stock"}[stock]
    return (
        f'<html><head><title>{title}</title><script type="application/ld+json">{json.dumps(product)}</script></head>'
        f'<body><main><h1 class="title">{title}</h1><p class="price">${price}</p><p class="stock">{words}</p>'
        f'<p class="sku">SKU: {sku}</p><form action="/cart"><button type="submit">Add to cart</button></form>'
        f"<p>{title} of the best steel, forged by hand.</p></main></body></html>"
    )
