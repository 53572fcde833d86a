"""Runs the reading of pages in child processes, because a thread that never returns cannot be stopped.

A page can come from anybody. One that hangs its reader, crashes it or eats memory costs one child, which is replaced;
neither the worker nor the pages in other children notice. The kernel enforces the limits of a child, so they also hold
while a regular expression or libxml2 does not return to Python.

A child knows nothing: no Django, no database connection, no setting of the worker's environment. It is a process of its
own and not a fork of the worker, which has threads and connections (`docs/decisions/page-sandbox.md`).
"""

import atexit
import contextlib
import fcntl
import os
import pickle
import pkgutil
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from enum import StrEnum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from harvester.kernel.errors import TerminalError, TransientError

#: Seconds of processor time for one page; most take 0.02.
TIMEOUT: Final = 10.0
#: A page may take this many times as long by the clock, because the machine may be busy with something else.
CLOCK_FACTOR: Final = 3
#: Bytes of memory for one child.
MEMORY: Final = 512 * 2**20
#: A child that holds this much after a page is replaced: memory of one large page would never be returned.
LARGE: Final = 128 * 2**20
#: Pages per child; so small leaks never matter.
PAGES_PER_CHILD: Final = 5_000
#: Reading is bound by processors, and each child takes 20 to 30 MB.
MOST_CHILDREN: Final = 4
#: Bytes of a result; a reading has a few KB.
LARGEST_RESULT: Final = 8 * 2**20
#: Seconds in which a child has to start, also on a machine that is ten times slower.
START_SECONDS: Final = 60.0
#: How often a child is started, or a page is tried, when children die that did nothing wrong.
ATTEMPTS: Final = 3
#: Characters of an adapter's error that are kept.
LONGEST_ERROR: Final = 300
#: Of the process itself; only Linux has them. The second number of the first is resident pages.
STATISTICS, OOM_SCORE = Path("/proc/self/statm"), Path("/proc/self/oom_score_adj")
#: Variables of the environment that Python or libraries need.
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "HOME", "TMPDIR")


class Failure(StrEnum):
    """How reading a page failed."""

    RAISED = "RAISED"
    TOO_SLOW = "TOO_SLOW"
    TOO_MUCH_MEMORY = "TOO_MUCH_MEMORY"
    DIED = "DIED"


class AdapterFailed(TerminalError):
    """The adapter did not end properly on this page.

    Attributes:
        failure: in which way.
    """

    code = "ADAPTER_FAILED"

    def __init__(self, failure: Failure, reason: str) -> None:
        super().__init__(reason)
        self.failure = failure


class SandboxUnavailable(TransientError):
    """No child process can be started."""

    code = "SANDBOX_UNAVAILABLE"


class Sandbox:
    """Child processes that read pages, one page each at a time. Any number of threads may call `read`."""

    def __init__(self, children: int | None = None, *, memory: int = MEMORY) -> None:
        self.children = children or min(os.cpu_count() or 1, MOST_CHILDREN)
        self._memory = memory
        self._turns = threading.Semaphore(self.children)
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        self._is_closed = False

    def read(self, function: Callable[..., Any] | str, *args: Any, timeout: float = TIMEOUT) -> Any:
        """Return what a function, or the one named "package.module:function", returns in a child.

        Raises:
            AdapterFailed: it raised, was too slow, took too much memory, or crashed.
            SandboxUnavailable: no child can be started.
        """
        request = pickle.dumps((function, args, timeout), pickle.HIGHEST_PROTOCOL)
        with self._turns:
            # A child that was killed from outside, such as by an operator, is not the page's fault.
            for _ in range(ATTEMPTS - 1):
                with contextlib.suppress(_ChildLost):
                    return self._read(request, timeout)
            try:
                return self._read(request, timeout)
            except _ChildLost as lost:
                raise AdapterFailed(Failure.DIED, f"The reader of the page crashed ({lost}).") from None

    def close(self) -> None:
        """End all children; those that are reading when they are done."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _read(self, request: bytes, timeout: float) -> Any:
        child = self._take()
        is_reusable = False
        try:
            result, is_reusable = child.ask(request, timeout)
            return result
        except AdapterFailed as problem:
            is_reusable = problem.failure is Failure.RAISED
            raise
        finally:
            with self._lock:
                is_reusable = is_reusable and not self._is_closed
                if is_reusable:
                    self._idle.append(child)
            if not is_reusable:
                child.end()

    def _take(self) -> "_Child":
        with self._lock:
            if self._is_closed:
                raise SandboxUnavailable("The sandbox was closed because this process is stopping.")
            dead = [child for child in self._idle if not child.is_alive]
            self._idle = [child for child in self._idle if child.is_alive]
            child = self._idle.pop() if self._idle else None
        for other in dead:
            other.end()
        return child or _start(self._memory)


_shared: Sandbox | None = None
_shared_lock = threading.Lock()


def sandbox() -> Sandbox:
    """Return the sandbox of this process. Its children start when they are needed."""
    global _shared  # noqa: PLW0603 - one per process, so that its children are as many as processors
    with _shared_lock:
        if _shared is None:
            _shared = Sandbox()
            atexit.register(close)
        return _shared


def close() -> None:
    """End the children of this process; the next call of `sandbox` starts others."""
    global _shared
    with _shared_lock:
        ended, _shared = _shared, None
    if ended:
        ended.close()


class _ChildLost(Exception):
    """The child ended without a result, for none of its limits."""


class _Child:
    """One child process, from the worker's side. Its standard input is never written: it ends with the worker."""

    def __init__(self, memory: int) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        program = f"from harvester.scraping.sandbox import serve; serve({theirs.fileno()}, {memory})"
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(place for place in sys.path if place)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C in a terminal stops the worker, and the worker stops its children
            )

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def receive(self, seconds: float) -> tuple[Any, ...]:
        """Return the next message.

        Raises:
            TimeoutError: there was none in time.
            EOFError, OSError: the child ended, or what it sent is too large.
        """
        if not self._connection.poll(seconds):
            raise TimeoutError
        return pickle.loads(self._connection.recv_bytes(LARGEST_RESULT + 1000))  # noqa: S301 - from our child

    def ask(self, request: bytes, timeout: float) -> tuple[Any, bool]:
        """Return the result, and whether the child can be asked again."""
        slow = AdapterFailed(Failure.TOO_SLOW, f"Reading the page took longer than {timeout:g} s and was stopped.")
        try:
            self._connection.send_bytes(request)
            failure, value, is_reusable = self.receive(timeout * CLOCK_FACTOR + START_SECONDS)
        except TimeoutError:
            raise slow from None
        except (EOFError, OSError):
            code = self.end(patience=1.0)
            if code in {-signal.SIGALRM, -signal.SIGPROF}:
                raise slow from None
            shown = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise _ChildLost(shown) from None
        if failure:
            raise AdapterFailed(Failure(failure), value)
        return pickle.loads(value), is_reusable  # noqa: S301 - ours

    def end(self, *, patience: float = 0.0) -> int:
        """End the child, unless it ends by itself within so many seconds, and return its exit code."""
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        if self._process.stdin:
            self._process.stdin.close()
        return self._process.wait()


def _start(memory: int) -> _Child:
    """Return a child that is ready."""
    for _ in range(ATTEMPTS):
        child = _Child(memory)
        try:
            child.receive(START_SECONDS)
        except (EOFError, OSError):
            child.end()
        else:
            return child
    raise SandboxUnavailable(
        f"A process that reads pages did not start {ATTEMPTS} times; see its error above. No page was read."
    )


# -- in the child ---------------------------------------------------------------------------------------------------


def serve(descriptor: int, memory: int) -> None:
    """Read pages until the worker ends."""
    # A stop request is for the worker, which lets jobs finish.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # These end the process, whatever it is doing: processor time or time is up, or the worker is gone.
    for number in (signal.SIGPROF, signal.SIGALRM, signal.SIGIO):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([0], [], [], 0)[0]:
        return  # the worker ended before this was set
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    with contextlib.suppress(OSError):
        OOM_SCORE.write_text("1000")  # if the machine runs out of memory, this process is the first to go

    connection = Connection(descriptor)
    connection.send_bytes(pickle.dumps(("ready",)))
    pages = resident = 0
    is_reusable = True
    while is_reusable:
        try:
            request = connection.recv_bytes()
        except EOFError:
            return
        pages += 1
        failure, result = _answer(request)
        _limit_time(0)
        with contextlib.suppress(OSError):
            resident = int(STATISTICS.read_text().split()[1]) * resource.getpagesize()
        is_reusable = pages < PAGES_PER_CHILD and resident < LARGE
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.send_bytes(pickle.dumps((failure, result, is_reusable), pickle.HIGHEST_PROTOCOL))


def _answer(request: bytes) -> tuple[Failure | None, Any]:
    """Return what the function returns, pickled; or how it failed, and a sentence."""
    try:
        # Importing the function's module is not the page's time.
        function, args, timeout = pickle.loads(request)  # noqa: S301 - from the worker
        if isinstance(function, str):
            function = pkgutil.resolve_name(function)
        _limit_time(timeout)
        result = pickle.dumps(function(*args), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return Failure.TOO_MUCH_MEMORY, "Reading the page took too much memory and was stopped."
    except BaseException as error:  # noqa: BLE001 - an adapter may even call sys.exit
        shown = f"The adapter failed: {type(error).__name__}: {error}"[:LONGEST_ERROR]
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return Failure.RAISED, f"{shown} ({Path(frame.filename).name}:{frame.lineno})"
    if len(result) > LARGEST_RESULT:
        return (
            Failure.RAISED,
            f"The reading of a page has {len(result)} bytes; at most {LARGEST_RESULT} are allowed.",
        )
    return None, result


def _limit_time(seconds: float) -> None:
    """Let the kernel end this process after so much processor time, or three times as long by the clock; 0: never."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * CLOCK_FACTOR)
