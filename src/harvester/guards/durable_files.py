"""Names on a disk that outlast a loss of power."""

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """A new name is durable only once its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
