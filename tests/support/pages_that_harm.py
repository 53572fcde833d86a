"""What an adapter can do on a page, for the sandbox. Imported by its children, so nothing here imports Django."""

import os
import re
import signal
import sys
import time
from pathlib import Path

kept = []


def length(body):
    return len(body)


def modules():
    return sorted(sys.modules)


def process():
    return os.getpid()


def descriptors():
    found = list(Path("/proc/self/fd").iterdir())  # one of them is that of this listing
    return {each.name: str(each.readlink()) for each in found if each.is_symlink()}


def environment():
    return dict(os.environ)


def raise_error():
    raise ValueError("the page has no heart")


def raise_in(text):
    raise RuntimeError(text)


def leave():
    sys.exit(3)


def loop_forever():
    while True:
        pass


def sleep_forever():
    time.sleep(1_000_000)


def backtrack_forever():
    """A regular expression that does not return to Python for years."""
    re.match("(a+)+$", "a" * 60 + "b")


def mark_and(path, name, *args):
    """Show that the page is being read, and go on with something else of this module."""
    Path(path).write_text(str(os.getpid()))
    return globals()[name](*args)


def eat_memory():
    eaten = []
    while True:
        eaten.append(bytearray(10 * 2**20))


def hold(megabytes):
    return len(bytearray(megabytes * 2**20))


def keep(megabytes):
    """As a leak would."""
    kept.append(b"x" * (megabytes * 2**20))
    return megabytes


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def crash_once(path):
    """As if somebody else had killed the child while it read this page for the first time."""
    if not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "read"


def huge_result():
    return bytes(20 * 2**20)


def unpicklable_result():
    return lambda: None


def wait_for_file(path):
    while not Path(path).exists():
        time.sleep(0.01)
    return os.getpid()
