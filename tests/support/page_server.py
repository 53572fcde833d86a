"""Many shops on one port of this machine, in a process of their own, which notes every request with its times.

The Host header says which shop is meant. Their names end with `home.arpa`, which is for homes and never resolved on
the internet, and below which each name is a domain of its own: `www.shop1.home.arpa` belongs to `shop1.home.arpa`. A
process resolves them after `resolve_locally()`; forked workers do it if they are started with `TEST_LOCAL_NAMES="1"`.
"""

import asyncio
import gzip
import json
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.forked import ROOT
from tests.support.shop_server import page

HOST = "127.0.0.1"
SUFFIX = ".home.arpa"
#: Below it names are domains of their own too, and never exist, but offers may link to them: they look public.
PUBLIC_SUFFIX = ".urn.arpa"
#: How a shop behaves by default.
#:
#: pages: "ok"; "hang" (accepts and never answers), "drip" (never done), "gone" (404), "busy" (429 with `retry_after`),
#:     "broken" (500), "close" (hangs up without an answer), or {"redirect": address}.
#: robots: "missing" (404), "broken" (500), "hang", {"redirect": address}, or the text of the file.
#: page_bytes: between which sizes pages are, as text; seconds: how long each answer takes; etag: whether pages have
#:     one, and answer 304.
BEHAVIOR: dict[str, Any] = {
    "pages": "ok",
    "robots": "missing",
    "retry_after": "1",
    "page_bytes": [2_000, 2_000],
    "seconds": 0.0,
    "etag": False,
}
#: Texts that fill pages up; compressed once, because that would take most of the time.
FILLERS = 8


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request that a server saw.

    Attributes:
        host: of its Host header, without the port.
        path: with the query.
        headers: by name in lower case.
        connection: a number for each connection.
        start: when its last byte had arrived, by the monotonic clock of this machine.
        end: when the answer was written or the client was gone; none while it is under way.
        status: of the answer; 0 for none.
    """

    host: str
    path: str
    headers: dict[str, str]
    connection: int
    start: float
    end: float | None
    status: int


@dataclass(frozen=True, kw_only=True)
class Politeness:
    """How requests to one domain were spread.

    Attributes:
        requests: how many there were.
        least_gap: seconds between the starts of the two that were closest; infinite for a single one.
        most_at_once: how many were under way at the same time.
        budget_used: the share of the possible requests from the first to the last.
    """

    requests: int
    least_gap: float
    most_at_once: int
    budget_used: float


def politeness(seen: Sequence[Seen], interval: float, key: Callable[[str], str]) -> dict[str, Politeness]:
    """Measure the requests of each domain; `key` maps a host to its domain."""
    by_domain: dict[str, list[Seen]] = {}
    for request in sorted(seen, key=lambda request: request.start):
        by_domain.setdefault(key(request.host), []).append(request)
    return {domain: _politeness(requests, interval) for domain, requests in by_domain.items()}


def _politeness(requests: list[Seen], interval: float) -> Politeness:
    starts = [request.start for request in requests]
    # At the same moment, an end counts before a start.
    steps = [(start, 1) for start in starts] + [(request.end, -1) for request in requests if request.end is not None]
    under_way = most = 0
    for _, step in sorted(steps):
        under_way += step
        most = max(most, under_way)
    return Politeness(
        requests=len(starts),
        least_gap=min((two - one for one, two in pairwise(starts)), default=float("inf")),
        most_at_once=most,
        budget_used=(len(starts) - 1) * interval / (starts[-1] - starts[0]) if len(starts) > 1 else 1.0,
    )


class PageServer:
    """A running server, seen from the process that started it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._read = 0
        self._seen: dict[int, Seen] = {}
        command = [sys.executable, "-m", "tests.support.page_server", str(log)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}
        )
        self.port = int(self._answer())

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def behave(self, host: str = "*", **behavior: Any) -> None:
        """Set how a shop behaves from now on; `*` is all that have no behavior of their own."""
        if unknown := set(behavior) - set(BEHAVIOR):
            raise ValueError(f"no shop can behave like {unknown}")
        self._send(host, behavior)

    def seen(self, host: str | None = None) -> list[Seen]:
        """Return all requests so far in the order of their starts, those under way without an end."""
        # The end of a request is noted when its answer was written, which a client may notice first.
        self._send("", {})
        with self._log.open("rb") as file:
            file.seek(self._read)
            for line in file:
                number, fields = json.loads(line)
                self._seen[number] = Seen(**fields)
                self._read += len(line)
        found = sorted(self._seen.values(), key=lambda request: request.start)
        return [request for request in found if host in (None, request.host)]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, host: str, behavior: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps([host, behavior]) + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the page server ended")
        return line.strip()


@contextmanager
def page_server(log: Path) -> Iterator[PageServer]:
    """A server whose log is written to this file; this process resolves the names of its shops."""
    server = PageServer(log)
    try:
        with resolved_locally():
            yield server
    finally:
        server.close()


def resolve_locally() -> None:
    """Let the names of shops lead to this machine, in the whole process until its end."""
    resolve = socket.getaddrinfo

    def resolve_shops(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        is_shop = isinstance(host, str) and host.endswith((SUFFIX, PUBLIC_SUFFIX))
        return resolve(HOST if is_shop else host, port, *args, **options)

    socket.getaddrinfo = resolve_shops


@contextmanager
def resolved_locally() -> Iterator[None]:
    resolve = socket.getaddrinfo
    resolve_locally()
    try:
        yield
    finally:
        socket.getaddrinfo = resolve


# -- in the server's process ----------------------------------------------------------------------------------------


class Shops:
    """Answers requests as each shop is set to behave."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("a", buffering=1)
        self._behaviors: dict[str, dict[str, Any]] = {}
        self._connections = self._requests = 0
        self._fillers: dict[tuple[int, int], list[tuple[bytes, bytes]]] = {}

    def behave(self, host: str, behavior: dict[str, Any]) -> None:
        self._behaviors.setdefault(host, {}).update(behavior)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        connection = self._connections
        try:
            while await self._serve_one(reader, writer, connection):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> bool:
        """Answer one request; return whether another may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        start = time.monotonic()
        path = head[0].split(" ")[1]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
        host = headers.get("host", "").partition(":")[0]
        self._requests += 1
        fields = {"host": host, "path": path, "headers": headers, "connection": connection, "start": start}
        number, status = self._requests, 0
        self._note(number, {**fields, "end": None, "status": 0})
        try:
            behavior = {**BEHAVIOR, **self._behaviors.get("*", {}), **self._behaviors.get(host, {})}
            is_robots = path == "/robots.txt"
            await asyncio.sleep(behavior["seconds"])
            what = behavior["robots"] if is_robots else behavior["pages"]
            if what in ("hang", "drip", "close"):
                await self._misbehave(what, reader, writer)
                return False
            status, more, body = self._robots(what) if is_robots else self._page(what, behavior, host, path, headers)
            lines = [f"HTTP/1.1 {status} Seen", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in more.items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if status == 304 else body))
            await writer.drain()
        finally:
            self._note(number, {**fields, "end": time.monotonic(), "status": status})
        return headers.get("connection", "").lower() != "close"

    def _note(self, number: int, fields: dict[str, Any]) -> None:
        self._log.write(json.dumps([number, fields]) + "\n")

    @staticmethod
    async def _misbehave(how: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Go on until the client is gone."""
        if how == "hang":
            while await reader.read(1000):
                pass
        if how == "drip":
            writer.write(b"HTTP/1.1 200 Seen\r\nContent-Length: 1000000\r\n\r\n")
            while not reader.at_eof():
                writer.write(b".")
                await writer.drain()
                with suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.1)

    @staticmethod
    def _robots(what: Any) -> tuple[int, dict[str, str], bytes]:
        if isinstance(what, dict):
            return 301, {"Location": what["redirect"]}, b""
        status = {"missing": 404, "broken": 500}.get(what, 200)
        return status, {"Content-Type": "text/plain"}, what.encode() if status == 200 else b""

    def _page(
        self, what: Any, behavior: dict[str, Any], host: str, path: str, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes]:
        if isinstance(what, dict):
            return 302, {"Location": what["redirect"]}, b""
        if what == "busy":
            return 429, {"Retry-After": behavior["retry_after"]}, b""
        if what in ("gone", "broken"):
            return {"gone": 404, "broken": 500}[what], {}, b""
        chance = sha256(f"{host}{path}".encode()).digest()
        answer = {"Content-Type": "text/html; charset=utf-8"}
        if behavior["etag"]:
            answer["ETag"] = f'"{chance.hex()[:16]}"'
            if headers.get("if-none-match") == answer["ETag"]:
                return 304, answer, b""
        price = f"{chance[0] + 1}.{chance[1] % 100:02}"
        # A name that ends with "ab" would say "from" in German.
        unique = page(f"Hammer {chance.hex()[:8]} of steel", price, sku=f"H-{chance.hex()[:12]}").encode()
        filler, compressed = self._filler(*behavior["page_bytes"], chance[2] % FILLERS)
        if "gzip" not in headers.get("accept-encoding", ""):
            return 200, answer, unique + filler
        beginning = zlib.compressobj(6, zlib.DEFLATED, -15)
        deflated = beginning.compress(unique) + beginning.flush(zlib.Z_FULL_FLUSH) + compressed
        check = zlib.crc32(filler, zlib.crc32(unique)).to_bytes(4, "little")
        trailer = check + (len(unique) + len(filler)).to_bytes(4, "little")
        return 200, {**answer, "Content-Encoding": "gzip"}, gzip.compress(b"")[:10] + deflated + trailer

    def _filler(self, least: int, most: int, which: int) -> tuple[bytes, bytes]:
        """Return text that makes a page long enough, and the same as the end of a deflated stream."""
        if (least, most) not in self._fillers:
            self._fillers[least, most] = [_fill(least + (most - least) * n // (FILLERS - 1), n) for n in range(FILLERS)]
        return self._fillers[least, most][which]


def _fill(size: int, which: int) -> tuple[bytes, bytes]:
    """About as compressible as a real page, to a fifth."""
    rows = []
    length = 0
    while length < size - 600:
        word = sha256(f"{which} {len(rows)}".encode()).hexdigest()
        rows.append(f'<li class="related"><a href="/product/{word[:24]}">Product {word[24:36]}</a> in the box</li>\n')
        length += len(rows[-1])
    text = "".join(rows).encode()
    end = zlib.compressobj(6, zlib.DEFLATED, -15)
    return text, end.compress(text) + end.flush()


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


async def _main(log: Path) -> None:
    shops = Shops(log)
    server = await asyncio.start_server(shops.serve, HOST, 0, backlog=1000)
    _say(server.sockets[0].getsockname()[1])
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        shops.behave(*json.loads(line))
        _say("done")


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
