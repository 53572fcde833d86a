"""A page that hangs, crashes or eats memory costs one child process; nothing else notices."""

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import pages_that_harm as pages
from tests.support.waiting import wait_for

from harvester.scraping import sandbox as sandbox_module
from harvester.scraping.sandbox import AdapterFailed, Failure, Sandbox, SandboxUnavailable, close, sandbox

#: The limit of most children here: an interpreter and a large page fit in, and it is full sooner.
MEMORY = 300 * 2**20


@pytest.fixture
def box():
    made = Sandbox(2, memory=MEMORY)
    yield made
    made.close()


def is_gone(pid):
    """Whether a process ended; its parent may not have asked for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_page_is_read_in_another_process(box):
    assert box.read(pages.length, b"x" * 200_000) == 200_000
    assert box.read(pages.process) != os.getpid()
    assert box.read("tests.support.pages_that_harm:length", b"abc") == 3


def test_the_largest_page_arrives(box):
    assert box.read(pages.length, bytes(10 * 2**20)) == 10 * 2**20


def test_many_threads_share_a_few_children(box):
    with ThreadPoolExecutor(16) as threads:
        sizes = list(threads.map(lambda number: box.read(pages.length, bytes(number)), range(400)))
        processes = set(threads.map(lambda _: box.read(pages.process), range(100)))
    assert sizes == list(range(400))
    assert 1 <= len(processes) <= 2


@pytest.mark.parametrize(
    ("function", "failure", "message"),
    [
        (pages.raise_error, Failure.RAISED, r"ValueError: the page has no heart \(pages_that_harm\.py:\d+\)"),
        (pages.leave, Failure.RAISED, "SystemExit: 3"),
        (pages.unpicklable_result, Failure.RAISED, "pickle"),
        (pages.huge_result, Failure.RAISED, "20971[0-9]+ bytes"),
        (pages.loop_forever, Failure.TOO_SLOW, r"longer than 0\.5 s"),
        (pages.sleep_forever, Failure.TOO_SLOW, r"longer than 0\.5 s"),
        (pages.backtrack_forever, Failure.TOO_SLOW, r"longer than 0\.5 s"),
        (pages.crash, Failure.DIED, "SIGSEGV"),
    ],
)
def test_what_an_adapter_does_wrong_is_named_and_other_pages_do_not_notice(box, tmp_path, function, failure, message):
    done = tmp_path / "done"
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(box.read, pages.wait_for_file, str(done))
        with pytest.raises(AdapterFailed, match=message) as failed:
            box.read(function, timeout=0.5)
        assert (failed.value.failure, failed.value.code) == (failure, "ADAPTER_FAILED")
        done.touch()
        assert other.result() > 0
    assert box.read(pages.length, b"abc") == 3


def test_an_adapter_that_eats_memory_is_stopped_and_other_pages_do_not_notice(box, tmp_path):
    done = tmp_path / "done"
    with ThreadPoolExecutor(1) as threads:
        other = threads.submit(box.read, pages.wait_for_file, str(done), timeout=60)
        with pytest.raises(AdapterFailed, match="too much memory") as failed:
            box.read(pages.eat_memory, timeout=60)
        assert failed.value.failure is Failure.TOO_MUCH_MEMORY
        done.touch()
        assert other.result() > 0


def test_the_limit_of_memory_is_512_mb_unless_it_is_given():
    made = Sandbox(1)
    try:
        assert made.read(pages.hold, 400) == 400 * 2**20
        with pytest.raises(AdapterFailed) as failed:
            made.read(pages.hold, 512)
        assert failed.value.failure is Failure.TOO_MUCH_MEMORY
    finally:
        made.close()


def test_the_text_of_an_error_is_cut(box):
    with pytest.raises(AdapterFailed) as failed:
        box.read(pages.raise_in, "x" * 100_000)
    assert len(str(failed.value)) < 400


def test_a_child_reads_page_after_page_also_after_an_error(box):
    first = box.read(pages.process)
    with pytest.raises(AdapterFailed):
        box.read(pages.raise_error)
    assert box.read(pages.process) == first


def test_a_child_that_keeps_much_memory_is_replaced():
    made = Sandbox(1)
    try:
        first = made.read(pages.process)
        assert made.read(pages.keep, 150) == 150
        assert made.read(pages.process) != first
        wait_for(lambda: is_gone(first))
    finally:
        made.close()


def test_a_page_is_read_again_if_somebody_else_killed_its_child(box, tmp_path):
    assert box.read(pages.crash_once, str(tmp_path / "crashed")) == "read"


def test_an_idle_child_that_was_killed_is_replaced(box):
    for _ in range(3):
        child = box.read(pages.process)
        os.kill(child, signal.SIGKILL)
        assert box.read(pages.process) != child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_page_is_read_to_its_end_while_everything_is_asked_to_stop(box, tmp_path, number):
    marked, done = tmp_path / "marked", tmp_path / "done"
    with ThreadPoolExecutor(1) as threads:
        page = threads.submit(box.read, pages.mark_and, str(marked), "wait_for_file", str(done), timeout=60)
        wait_for(lambda: marked.exists() and marked.read_text())
        child = int(marked.read_text())
        os.kill(child, number)
        done.touch()
        assert page.result() == child


@pytest.mark.parametrize("doing", ["loop_forever", "sleep_forever", "backtrack_forever", "process"])
def test_children_end_with_a_worker_that_is_killed(tmp_path, doing):
    """In the last case the child is idle."""
    marked = tmp_path / "marked"
    program = (
        "import sys, time; from harvester.scraping.sandbox import sandbox; from tests.support import pages_that_harm\n"
        "sandbox().read(pages_that_harm.mark_and, sys.argv[1], sys.argv[2], timeout=100_000)\n"
        "time.sleep(100_000)"
    )
    command = [sys.executable, "-c", program, str(marked), doing]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, env=environment) as worker:
        wait_for(lambda: marked.exists() and marked.read_text())
        child = int(marked.read_text())
        assert not is_gone(child)
        worker.kill()
    wait_for(lambda: is_gone(child))


def test_a_child_has_nothing_of_the_worker(box, monkeypatch):
    """No Django, no settings of the environment, no connections, even if those are inherited by others."""
    monkeypatch.setenv("HARVESTER_SECRET", "1")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.set_inheritable(True)
        theirs.set_inheritable(True)
        descriptors = box.read(pages.descriptors)
    sockets = [name for name, target in descriptors.items() if target.startswith("socket:")]
    pipes = [name for name, target in descriptors.items() if int(name) > 2 and target.startswith("pipe:")]
    assert (len(sockets), pipes) == (1, [])
    assert not [name for name in box.read(pages.environment) if name.startswith(("HARVESTER", "DJANGO"))]
    loaded = {name.partition(".")[0] for name in box.read(pages.modules)}
    assert not loaded & {"django", "psycopg", "redis", "polars", "structlog", "httpx"}


def test_a_closed_sandbox_has_no_children_and_reads_nothing(tmp_path):
    made = Sandbox(2)
    marked, done = tmp_path / "marked", tmp_path / "done"
    with ThreadPoolExecutor(1) as threads:
        page = threads.submit(made.read, pages.mark_and, str(marked), "wait_for_file", str(done), timeout=60)
        wait_for(lambda: marked.exists() and marked.read_text())
        idle = made.read(pages.process)
        made.close()
        assert is_gone(idle)
        done.touch()
        busy = page.result()  # what is being read is read to its end
    wait_for(lambda: is_gone(busy))
    with pytest.raises(SandboxUnavailable, match="stopping"):
        made.read(pages.process)


def test_a_process_has_one_sandbox_until_it_is_closed():
    first = sandbox()
    try:
        child = first.read(pages.process)
        assert sandbox() is first
        close()
        assert is_gone(child)
        assert sandbox() is not first
    finally:
        close()


def test_children_that_do_not_start_are_not_the_fault_of_the_page(monkeypatch):
    monkeypatch.setattr(sandbox_module.sys, "executable", "/bin/false")
    with pytest.raises(SandboxUnavailable, match="did not start 3 times"):
        Sandbox(1).read(pages.process)


def test_no_thread_waits_forever_for_children_that_all_fail(box):
    failures = []

    def read():
        with pytest.raises(AdapterFailed) as failed:
            box.read(pages.crash)
        failures.append(failed.value.failure)

    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [Failure.DIED] * 6
