"""Shops that mean harm: each page has a clear outcome, in bounded time and memory, and the next one is read."""

import itertools
import resource
from dataclasses import replace

import pytest
from tests.support import catalog
from tests.support import scrape_world as world
from tests.support.scripted_shop import Reply, ScriptedShop, acting, bomb, endless, html, moved, product_page

from harvester.scraping import fetching, reading
from harvester.scraping.models import KeptPage


@pytest.fixture
def shop(database, settings, monkeypatch):
    world.allow_scraping(settings)
    with ScriptedShop({"/good": html(product_page("Saw", sku="S-9"))}) as running:
        yield running
    fetching.close()


def read(shop, reply, **values):
    """The outcome of a hostile page, after which the worker reads a good one."""
    shop.replies["/p"] = reply
    of = world.source()
    part = world.read_once(of, values.pop("url", f"{shop.url}/p"), **values)
    assert world.read_once(of, f"{shop.url}/good").outcome == "OFFER"
    return part


def two_gigabytes(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", str(2 * 1024**3))
    handler.end_headers()
    block = b"<p>hammer</p>" * 80_000
    while True:
        handler.wfile.write(block)


def headers_without_end(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in itertools.count():
        handler.wfile.write(f"X-Header-{number}: {'x' * 1000}\r\n".encode())


@pytest.mark.parametrize(
    "reply",
    [acting(two_gigabytes), endless(itertools.repeat(bytes(1_000_000))), bomb(), acting(headers_without_end)],
    ids=["2 GB", "without an end", "a bomb", "headers"],
)
def test_a_page_without_an_end_is_stopped(shop, reply):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    part = read(shop, reply)
    assert part.outcome == "NETWORK"
    assert part.detail["error"]
    assert not KeptPage.objects.filter(url__endswith="/p").exists()
    # Kilobytes: the shop in this process takes some of them.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000


@pytest.mark.parametrize("pause", [0.05, 3600.0], ids=["a drip", "silence"])
def test_a_shop_that_is_too_slow_is_given_up(shop, monkeypatch, pause):
    fetching.close()
    monkeypatch.setattr(fetching, "LIMITS", replace(fetching.LIMITS, total=1.0))
    shop.replies["/p"] = endless(itertools.repeat(b"x"), pause=pause)
    of = world.source()
    part = world.read_once(of, f"{shop.url}/p")
    assert part.outcome == "NETWORK"
    assert len(shop.asked("/p")) <= 3
    monkeypatch.undo()
    fetching.close()
    assert world.read_once(of, f"{shop.url}/good").outcome == "OFFER"


@pytest.mark.parametrize(
    ("body", "type_", "outcomes"),
    [
        (bytes(500_000), "text/html", {"EMPTY_PAGE"}),
        (b"", "text/html", {"EMPTY_PAGE"}),
        (b"", None, {"EMPTY_PAGE"}),
        (product_page("Gro\u00dfer Hammer").encode("utf-16"), "text/html; charset=utf-8", None),
        (product_page("Gro\u00dfer Hammer").encode("latin-1"), "text/html; charset=klingon", None),
        (b"\xff\xfe\x00" * 10_000, "text/html; charset=utf-16", None),
        (b"<div>" * 100_000, "text/html", None),
        (b"%PDF-1.7", "application/pdf", {"PAGE_STRUCTURE_CHANGED"}),
        (b"GIF89a", "image/gif\r\n", {"PAGE_STRUCTURE_CHANGED"}),
        (b"<html>" + b"<!--" * 100_000, "text/html", None),
    ],
)
def test_a_strange_page_has_a_clear_outcome(shop, body, type_, outcomes):
    part = read(shop, Reply(body=body, type=type_ and type_.strip()))
    assert part.outcome in (
        outcomes or {"OFFER", "EMPTY_PAGE", "NO_AGREEMENT", "PAGE_STRUCTURE_CHANGED", "TITLE_NOT_FOUND"}
    )
    if part.outcome == "OFFER":
        assert part.found["price"] == "19.99 USD"


@pytest.mark.parametrize(
    ("harm", "words"),
    [("raise_error", "adapter failed"), ("run_forever", "longer than"), ("eat_memory", "memory"), ("crash", "crashed")],
)
def test_an_adapter_that_fails_harms_only_its_page(shop, monkeypatch, harm, words):
    shop.replies["/p"] = html(product_page())
    of = world.source()
    with monkeypatch.context() as patched:
        patched.setattr(reading, "READ", f"tests.support.adapters_that_harm:{harm}")
        patched.setattr(reading, "TIMEOUT", 1.0)
        part = world.read_once(of, f"{shop.url}/p")
    assert part.outcome == "ADAPTER_FAILED"
    assert words in part.detail["error"]
    assert (part.page, len(shop.asked("/p"))) == (KeptPage.objects.get().hash, 1)
    assert world.read_once(of, f"{shop.url}/good").outcome == "OFFER"


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/p", "http://169.254.169.254/latest", "http://[::1]/p", "http://[::ffff:10.0.0.1]/p",
        "http://0x0a000001/p", "http://167772161/p", "http://012.0.0.1/p", "http://[64:ff9b::a00:1]/p",
        "http://olga:secret@127.0.0.1/p", "ftp://127.0.0.1/p", "gopher://127.0.0.1/", "http://", "javascript:1",
    ],
)  # fmt: skip
def test_no_private_or_strange_address_is_connected_to(shop, url):
    part = read(shop, html("x"), url=url, canonical_url=url)
    assert part.outcome == "INVALID_URL"
    assert "secret" not in str(part.detail)
    assert shop.asked() == ["/robots.txt", "/good"]


def test_a_redirect_to_a_private_host_is_not_followed(shop):
    for place in ("http://10.0.0.1/", "http://169.254.169.254/latest/meta-data", "//[::1]/", "file:///etc/passwd"):
        assert read(shop, moved(302, place)).outcome == "WRONG_DOMAIN"
        catalog.fetch("UPDATE scrape_targets SET url = url || '?' || id, canonical_url = canonical_url || '?' || id")
