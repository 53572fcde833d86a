"""The text of harvester.conf, which PostgreSQL includes and which is rewritten at each start."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from harvester.engine.embedded.layout import PORT, Layout
from harvester.kernel.errors import ConfigError

#: Megabytes. An eighth of the memory, because the server shares the machine with the workers. Indexes that do not fit
#: are read and written page by page during an import.
LEAST_BUFFERS_MB, MOST_BUFFERS_MB = 128, 4096
#: The kernel's memory limit of a container, which otherwise sees the memory of its host.
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

#: Bytes. Containers often get 64 MB of /dev/shm, with which a parallel hash join fails with "no space left".
ENOUGH_SHARED_MEMORY = 1 << 30

NAME = re.compile(r"[a-z_][a-z0-9_.]*")
LOGGING = {
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d ",
    "lc_messages": "C",
    # Statements and details contain values of rows, which must not be logged.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}


def structure(layout: Layout) -> dict[str, str]:
    """Return the settings that are needed to find the server. No option may change them."""
    return {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(layout.socket_dir),
        "unix_socket_permissions": "0700",
        "cluster_name": layout.tag,
    }


def render(layout: Layout, options: Mapping[str, str]) -> str:
    for name, value in options.items():
        if not NAME.fullmatch(name) or not str(value).isprintable():
            raise ConfigError(f"{name!r} = {value!r} is not a setting of PostgreSQL; the server was not started.")
        if name in structure(layout):
            raise ConfigError(f"{name} belongs to the embedded cluster and cannot be set; leave it out.")
    settings = {**_tuning(), **LOGGING, **structure(layout)}
    lines = ["# Written by Harvester at each start of the server; changes here are lost."]
    lines += [f"{name} = {_quoted(value)}" for name, value in settings.items()]
    lines += ["", "# Options of the process that started the server."]
    lines += [f"{name} = {_quoted(value)}" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def _tuning() -> dict[str, str]:
    memory = min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_memory_limits())
    buffers_mb = min(max((memory >> 20) // 8, LEAST_BUFFERS_MB), MOST_BUFFERS_MB)
    return {
        "max_connections": "200",
        "shared_buffers": f"{buffers_mb}MB",
        "maintenance_work_mem": "128MB",
        "random_page_cost": "1.1",
        "jit": "off",
        **_shared_memory(Path("/dev/shm")),  # noqa: S108 - only its size is read
        # Bulk loads write gigabytes of WAL: few, spread checkpoints instead of one every few seconds.
        "max_wal_size": "4GB",
        # WAL files are reused, because a new one is written twice. They are kept only once they were needed.
        "min_wal_size": "1536MB",
        "checkpoint_timeout": "15min",
        "synchronous_commit": "on",
        # A killed client must not keep its locks until its statement ends.
        "client_connection_check_interval": "10s",
        "timezone": "UTC",
    }


def _memory_limits() -> Iterator[int]:
    """Yield limits in bytes; without a limit, the kernel reports "max" or a number beyond any machine."""
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
