"""`python -m tests.bench.ingest`: the time of catalogs, compared with the least that they could take."""

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from tests.bench import catalog_files, ingest_cases
from tests.bench.ingest_cases import Figures
from tests.bench.ingest_more import measure_peers, measure_readers, measure_reruns
from tests.bench.ingest_report import Results, report
from tests.bench.seeded import seed
from tests.bench.server import Server, own_server
from tests.support.sftp_server import SftpServer

console = Console(width=140)


def main() -> int:
    options = _options()
    os.umask(0o022)
    with own_server(options.home) as server, tempfile.TemporaryDirectory(prefix="harvester-bench-files-") as directory:
        os.environ["HARVESTER_EGRESS_ALLOW"] = "127.0.0.0/8"
        seed(server, offers=options.offers, prices=options.prices, log=console.print)
        results, code = Results(server=server.version()), 0
        with SftpServer(Path(directory)) as sftp:
            # It takes most of an hour: if it is stopped early, the results so far are kept.
            for _ in _measure(server, sftp, options, results):
                code = report(results, console, write=not options.quick)
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ingest", description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000, help="rows of the large catalog (500,000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each case, of which the median counts (5)")
    parser.add_argument("--offers", type=int, default=1_000_000, help="offers of other sources (1,000,000)")
    parser.add_argument("--prices", type=int, default=10, help="prices of each of them (10)")
    parser.add_argument("--sizes", default="50,5,1", help="by what the rows are divided for each size (50,5,1)")
    parser.add_argument("--peer-rounds", type=int, help="rounds of the peers (as many as of the cases)")
    parser.add_argument("--reruns", type=int, default=100, help="earlier runs of the same feed (100)")
    parser.add_argument("--parts", default="cases,peers,readers,reruns", help="what to measure (everything)")
    parser.add_argument("--home", type=Path, help="seed once and keep the server here, for the next time")
    parser.add_argument("--quick", action="store_true", help="writes no page of the docs")
    return parser.parse_args()


def _measure(server: Server, sftp: SftpServer, options: argparse.Namespace, results: Results) -> Iterator[str]:
    """Measure one part after the other; answers each that was."""
    sizes = [options.rows // int(part) for part in options.sizes.split(",")]
    parts, log = options.parts.split(","), console.print
    if "cases" in parts:
        results.sizes = [_size(server, sftp, rows, options.rounds) for rows in sizes]
        yield "cases"
    files = catalog_files.write_all(sftp.root, options.rows)
    if "peers" in parts:
        results.peers = measure_peers(server, files, options.peer_rounds or options.rounds, log)
        yield "peers"
    if "readers" in parts:
        results.readers = measure_readers(server, sftp, files, log)
        yield "readers"
    if "reruns" in parts:
        results.reruns = measure_reruns(server, sftp, files, runs=options.reruns, rounds=options.rounds, log=log)
        yield "reruns"


def _size(server: Server, sftp: SftpServer, rows: int, rounds: int) -> Figures:
    files = catalog_files.write_all(sftp.root, rows)
    return ingest_cases.measure(server, sftp, files, rows, rounds=rounds, log=console.print)


if __name__ == "__main__":
    raise SystemExit(main())
