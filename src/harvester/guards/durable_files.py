"""File names that survive a power loss."""

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Flush a directory to the disk: a new file name is durable only then."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
