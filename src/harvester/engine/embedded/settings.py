"""The text of harvester.conf, which PostgreSQL includes and which is written anew at each start."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from harvester.engine.embedded.layout import PORT, Layout
from harvester.kernel.errors import ConfigError

#: Megabytes. An eighth of the memory, because the server shares the machine with the workers. Indexes that do not fit
#: are read and written page by page while a catalog comes in.
LEAST_BUFFERS_MB, MOST_BUFFERS_MB = 128, 4096
#: Where the kernel says how much memory a container may use; it sees the memory of its host otherwise.
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

#: Bytes. Containers often get 64 MB of /dev/shm, in which a parallel hash join dies with "no space left".
ENOUGH_SHARED_MEMORY = 1 << 30

NAME = re.compile(r"[a-z_][a-z0-9_.]*")


def structure(layout: Layout) -> dict[str, str]:
    """The settings on which finding the server rests. No option may change them."""
    return {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(layout.socket_dir),
        "unix_socket_permissions": "0700",
        "cluster_name": layout.tag,
    }


def render(layout: Layout, options: Mapping[str, str]) -> str:
    _check_options(layout, options)
    settings = {**_tuning(), **_logging(), **structure(layout)}
    lines = ["# Written by Harvester at each start of the server; changes here are lost."]
    lines += [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    lines += ["", "# Options of the process that started the server."]
    lines += [f"{name} = {_quoted(value)}" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def _check_options(layout: Layout, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if not NAME.fullmatch(name) or not str(value).isprintable():
            raise ConfigError(f"{name!r} = {value!r} is no setting of PostgreSQL; the server was not started.")
        if name in structure(layout):
            raise ConfigError(f"{name} belongs to the embedded cluster and cannot be set; leave it out.")


def _tuning() -> dict[str, str]:
    return {
        "max_connections": "200",
        "shared_buffers": f"{_buffers_mb()}MB",
        "maintenance_work_mem": "128MB",
        "random_page_cost": "1.1",
        "jit": "off",
        **_shared_memory(Path("/dev/shm")),  # noqa: S108 - only its size is read
        # Bulk loads write gigabytes of WAL: few, spread checkpoints instead of one every few seconds.
        "max_wal_size": "4GB",
        # Files of the log are used again; a new one is written twice. They are kept only once they were needed.
        "min_wal_size": "1536MB",
        "checkpoint_timeout": "15min",
        "synchronous_commit": "on",
        # A killed client must not keep its locks until its statement ends by itself.
        "client_connection_check_interval": "10s",
        "timezone": "UTC",
    }


def _logging() -> dict[str, str]:
    return {
        "log_timezone": "UTC",
        "log_line_prefix": "%m [%p] %q%u@%d ",
        "lc_messages": "C",
        # Statements and details carry values of rows; the log is no place for them.
        "log_error_verbosity": "terse",
        "log_min_error_statement": "panic",
    }


def _buffers_mb() -> int:
    memory = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_memory_limits())
    return min(max((memory >> 20) // 8, LEAST_BUFFERS_MB), MOST_BUFFERS_MB)


def _memory_limits() -> Iterator[int]:
    """Bytes; whoever has no limit says "max", or a number beyond every machine."""
    yield sys.maxsize
    for path in _MEMORY_LIMITS:
        with suppress(OSError, ValueError):
            yield int(path.read_text())


def _shared_memory(place: Path) -> dict[str, str]:
    try:
        status = os.statvfs(place)
    except OSError:
        return {"dynamic_shared_memory_type": "mmap"}
    enough = status.f_frsize * status.f_blocks >= ENOUGH_SHARED_MEMORY
    return {"dynamic_shared_memory_type": "posix" if enough else "mmap"}


def _quoted(value: str) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"
