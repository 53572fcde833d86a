"""How long a robots.txt of 500 KB takes: reading it and one question. `python -m tests.bench.robots` prints both."""

import gc
import time

from harvester.kernel.robots import MOST_BYTES, parse_robots

#: Longer than the addresses of most products.
TARGET = "/products/" + "a-long-name-" * 16 + "?variant=12345"


def robots_500kb_ms(rounds: int = 5) -> float:
    """Return the milliseconds that the worst of several files takes to be read and to answer once; best of rounds."""
    # What other cases of the benchmark left in this process is not looked through for garbage.
    gc.collect()
    gc.freeze()
    try:
        return max(min(_milliseconds(body) for _ in range(rounds)) for body in _files())
    finally:
        gc.unfreeze()


def _milliseconds(body: bytes) -> float:
    start = time.perf_counter()
    parse_robots(body).allows(TARGET, "harvester")
    return (time.perf_counter() - start) * 1000


def _files() -> list[bytes]:
    """Many short rules, ordinary ones, ones with escapes, wildcards in each, and one rule of wildcards only."""
    lines = {
        "short": lambda number: f"Disallow: /{number}",
        "ordinary": lambda number: f"Disallow: /catalog/category-{number}/filter/",
        "escaped": lambda number: f"Disallow: /caf%c3%a9/{number}/%7Ehome",
        "wildcards": lambda number: f"Disallow: /*a*{number}*?sort=*$",
        "inner": lambda number: f"Allow: *a{number}",
    }
    files = [f"User-agent: *\nDisallow: /{'*a' * (MOST_BYTES // 2)}".encode()[:MOST_BYTES]]
    for line in lines.values():
        body = b"User-agent: *\n" + "\n".join(line(number) for number in range(50_000)).encode()
        files.append(body[:MOST_BYTES])
    return files


if __name__ == "__main__":
    for body in _files():
        print(f"{body[14:50]!r:60} {min(_milliseconds(body) for _ in range(5)):8.1f} ms")  # noqa: T201 - a report
    print(f"robots_500kb_ms {robots_500kb_ms():.1f}")  # noqa: T201 - a report
