"""A process that writes an artifact: `python -m tests.support.artifact_writer ROOT MODE`.

It says a line whenever it got somewhere and then waits for one, so that a test can end it there.
"""

import resource
import sys
from pathlib import Path

from harvester.guards.artifacts import ArtifactStore, DiskFull

BLOCK = b"b" * 100_000


def main(root: str, mode: str) -> None:
    store = ArtifactStore(Path(root))
    if mode == "small disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        try:
            _write(store, blocks=20)
        except DiskFull as error:
            _say(f"refused {error.code}")
        return
    with store.writer() as writer:
        writer.write(BLOCK)
        _say("wrote")
        sys.stdin.readline()
        _say(writer.commit().sha256)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _write(store: ArtifactStore, blocks: int) -> None:
    with store.writer() as writer:
        for _ in range(blocks):
            writer.write(BLOCK)
        writer.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
