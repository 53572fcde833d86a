"""Artifacts are whole or not there, whatever happens while they are written."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.artifact_writer import BLOCK

from harvester.guards.artifacts import (
    Artifact,
    ArtifactMissing,
    ArtifactStore,
    ArtifactStoreFailed,
    ArtifactStoreForbidden,
    DiskFull,
    Pruned,
    artifact_path,
)
from harvester.kernel.errors import ConfigError, TerminalError, TransientError

CONTENT = b"sku,title\n1,one\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path):
    return tmp_path / "home" / "artifacts"


@pytest.fixture
def store(root):
    return ArtifactStore(root)


def put(store, content=CONTENT, block_bytes=1_000_000):
    with store.writer() as writer:
        for start in range(0, len(content), block_bytes):
            writer.write(content[start : start + block_bytes])
        return writer.commit()


def read(store, sha256=SHA256):
    with store.open(sha256) as file:
        return file.read()


def files(root):
    return sorted(path for path in root.rglob("*") if path.is_file() and path.name != ".prune.lock")


def parts(root):
    return [path for path in files(root) if path.name.startswith(".part-")]


def age(path, **how):
    moment = (datetime.now(UTC) - timedelta(**how)).timestamp()
    os.utime(path, (moment, moment))


def writer_process(root, mode="wait"):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.artifact_writer", str(root), mode],
        cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": f"{REPOSITORY / 'src'}"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_an_artifact_is_kept_under_its_hash_and_read_again(store, root):
    with store.writer() as writer:
        writer.write(CONTENT[:5])
        writer.write(b"")
        writer.write(CONTENT[5:])
        artifact = writer.commit()
    assert artifact == Artifact(sha256=SHA256, size=len(CONTENT))
    assert files(root) == [root / SHA256[:2] / SHA256[2:]]
    assert store.has(SHA256)
    assert read(store) == CONTENT


def test_an_empty_artifact_is_one_too(store):
    with store.writer() as writer:
        artifact = writer.commit()
    assert artifact == Artifact(sha256=hashlib.sha256(b"").hexdigest(), size=0)
    assert read(store, artifact.sha256) == b""


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_files_are_private_whatever_the_umask(store, root, umask):
    before = os.umask(umask)
    try:
        put(store)
    finally:
        os.umask(before)
    for path in (root, *root.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_artifact_has_no_name_before_it_is_committed(store, root):
    with store.writer() as writer:
        writer.write(CONTENT)
        assert files(root) == parts(root)
        assert not store.has(SHA256)
        writer.commit()
        assert not parts(root)


def test_what_was_not_committed_is_removed(store, root):
    def fail():
        with store.writer() as writer:
            writer.write(CONTENT)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with store.writer() as writer:
        writer.write(CONTENT)
    assert files(root) == []


def test_a_writer_is_used_once(store):
    with store.writer() as writer:
        writer.commit()
        for again in (writer.commit, lambda: writer.write(b"x")):
            with pytest.raises(ValueError, match="already committed or discarded"):
                again()


def test_a_missing_artifact_is_reported_and_never_retried(store):
    assert not store.has(SHA256)
    with pytest.raises(ArtifactMissing, match=SHA256) as failure:
        store.open(SHA256)
    assert isinstance(failure.value, TerminalError)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", SHA256[:-1], SHA256.upper(), SHA256 + "\n", "g" * 64])
def test_what_is_no_hash_names_nothing(store, name):
    for use in (store.open, store.has):
        with pytest.raises(ValueError, match="64"):
            use(name)


def test_the_same_content_is_one_file_however_often_it_is_written(store, root):
    barrier = threading.Barrier(8)
    found = []

    def write():
        with store.writer() as writer:
            writer.write(CONTENT)
            barrier.wait()
            found.append(writer.commit())

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {Artifact(sha256=SHA256, size=len(CONTENT))}
    assert len(found) == 8
    assert files(root) == [artifact_path(root, SHA256)]


def test_a_reader_goes_on_reading_while_the_same_content_is_written_again(store):
    put(store)
    with store.open(SHA256) as file:
        put(store)
        assert file.read() == CONTENT


def test_fault_10_a_killed_writer_leaves_a_part_that_is_swept(store, root):
    process = writer_process(root)
    assert process.stdout.readline() == "wrote\n"
    assert len(parts(root)) == 1
    process.kill()
    process.communicate()
    assert files(root) == parts(root)
    assert store.sweep() == 0, "too young"
    age(parts(root)[0], days=2)
    assert store.sweep() == 1
    assert files(root) == []


def test_a_living_writer_is_never_swept_however_old_its_part(store, root):
    process = writer_process(root)
    assert process.stdout.readline() == "wrote\n"
    age(parts(root)[0], days=20)
    assert store.sweep() == 0
    out, _ = process.communicate("go on\n")
    assert out.strip() == hashlib.sha256(BLOCK).hexdigest()
    assert store.has(out.strip())


def test_sweeping_and_pruning_leave_everything_else(store, root):
    assert store.sweep() == 0
    assert store.prune(datetime.now(UTC)) == Pruned()
    put(store)
    (root / "notes.txt").write_text("of the operator")
    (root / "ab").mkdir(exist_ok=True)
    (root / "ab" / "notes.txt").write_text("of the operator")
    for path in files(root):
        age(path, days=100)
    store.sweep()
    assert store.prune(datetime.now(UTC)).files == 1
    assert [path.name for path in files(root)] == ["notes.txt", "notes.txt"]


def test_fault_10_a_disk_that_is_really_full_leaves_nothing(root):
    out, _ = writer_process(root, "small disk").communicate()
    assert out == "refused DISK_FULL\n"
    assert files(root) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize(
    ("step", "nth"),
    [("write", 1), ("write", 2), ("write", 4), ("fsync", 1), ("fsync", 2), ("fsync", 3), ("rename", 1)],
)
def test_fault_10_a_full_disk_at_any_step_is_transient_and_leaves_nothing(root, monkeypatch, code, step, nth):
    store = ArtifactStore(root)
    put(store, b"what was there before")
    before = files(root)
    calls = []

    def failing(real):
        def call(*args, **kwargs):
            calls.append(args)
            if len(calls) == nth:
                raise OSError(code, os.strerror(code))
            return real(*args, **kwargs)

        return call

    place, name = {"write": (os, "write"), "fsync": (os, "fsync"), "rename": (Path, "replace")}[step]
    monkeypatch.setattr(place, name, failing(getattr(place, name)))
    with pytest.raises(DiskFull) as failure:
        put(store, CONTENT * 4, block_bytes=len(CONTENT))
    monkeypatch.undo()
    assert isinstance(failure.value, TransientError)
    assert not parts(root)
    # A directory that cannot be synchronized leaves a complete artifact that was not reported to the caller.
    assert set(before) <= set(files(root))
    if step != "fsync" or nth == 1:
        assert files(root) == before
    put(store)
    assert store.has(SHA256)


def test_fault_10_a_failed_write_removes_the_part_at_once(store, root, monkeypatch):
    writer = store.writer()
    writer.write(CONTENT)
    monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(DiskFull):
        writer.write(CONTENT)
    assert files(root) == []


def test_writes_in_pieces_lose_nothing(store, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    assert put(store).sha256 == SHA256
    monkeypatch.undo()
    assert read(store) == CONTENT


def test_a_disk_that_does_not_work_is_tried_again(store, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ArtifactStoreFailed) as failure:
        put(store)
    assert isinstance(failure.value, TransientError)


def test_a_place_that_may_not_be_written_is_a_config_error(tmp_path):
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(ArtifactStoreForbidden) as failure:
        put(ArtifactStore(tmp_path / "file" / "artifacts"))
    assert isinstance(failure.value, ConfigError)


def test_old_artifacts_are_pruned_and_protected_ones_kept(store, root):
    old, protected, young = (put(store, text) for text in (b"old", b"protected", b"young"))
    for artifact in (old, protected):
        age(artifact_path(root, artifact.sha256), days=31)
    age(artifact_path(root, young.sha256), days=29)
    assert store.prune(datetime.now(UTC) - timedelta(days=30), {protected.sha256}) == Pruned(files=1, bytes=3)
    assert [store.has(artifact.sha256) for artifact in (old, protected, young)] == [False, True, True]


def test_content_that_was_written_again_is_young_again(store, root):
    put(store)
    age(artifact_path(root, SHA256), days=31)
    put(store)
    assert store.prune(datetime.now(UTC) - timedelta(days=30)) == Pruned()
    assert store.has(SHA256)


def test_pruning_while_the_same_content_is_written_never_removes_what_was_committed(store, root):
    """A committed artifact is found, however often it was old just before."""
    stop = threading.Event()

    def prune():
        while not stop.is_set():
            store.prune(datetime.now(UTC) - timedelta(days=30))

    pruner = threading.Thread(target=prune)
    pruner.start()
    try:
        for _ in range(200):
            put(store)
            assert store.has(SHA256)
            age(artifact_path(root, SHA256), days=31)
    except FileNotFoundError:
        pytest.fail("pruned although it was just committed")
    finally:
        stop.set()
        pruner.join()


def test_a_moment_without_a_time_zone_is_refused(store):
    with pytest.raises(ValueError, match="time zone"):
        store.prune(datetime(2024, 1, 1))  # noqa: DTZ001 - that is the point
