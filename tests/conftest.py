"""Every test run has an embedded cluster of its own; every test that asks for `database` finds empty tables."""

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import django
import pytest
from hypothesis import is_hypothesis_test
from hypothesis import settings as hypothesis_settings

from harvester.guards import redaction
from tests.support import copied_database
from tests.support.durations import Durations
from tests.support.generated import examples
from tests.support.tracebacks import print_plain_tracebacks

# What is loaded and collected here stays until the end, and is looked through for garbage again and again;
# `pytest_collection_finish` goes on with what comes later.
gc.disable()
# Only what the tests say counts: a developer's own settings must not reach them.
_OURS = ("HARVESTER_", "CREDENTIAL_", "AFFILIATE_FEED_", "WORKER_ID")
for _name in [name for name in os.environ if name.startswith(_OURS)]:
    del os.environ[_name]
# A machine may forbid to keep compiled modules; every process that the tests start would compile all of them again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The server's unprivileged user has to reach it, which pytest's own temporary directories do not allow.
HOME = Path(tempfile.mkdtemp(prefix="harvester-"))
HOME.chmod(0o755)
os.environ["HARVESTER_HOME"] = str(HOME)
os.environ["DJANGO_SETTINGS_MODULE"] = "harvester.settings"
django.setup()
print_plain_tracebacks()
# A busy machine is not a failure.
hypothesis_settings.register_profile("project", deadline=None, max_examples=examples(100))
hypothesis_settings.load_profile("project")


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests():
    """A password that another test of the process used, such as "wrong", would be removed from what this one logs."""
    redaction.forget_all()


def _find_static_files_once():
    """Each client of a test loads the middleware, which would look at every static file there is once more."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    look, found = WhiteNoiseMiddleware.add_files_from_finders, {}

    def add_files(self):
        if not found:
            look(self)
            found.update(self.files)
        self.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = add_files


_find_static_files_once()

#: Tests that mostly wait: for processes, for a browser, for a worker that counts as dead. Others compute meanwhile.
WAITING = ("faults", "browser", "engine")
#: The part of the run in which the tests that wait are spread. Short files end it, so that processes which share the
#: work end at the same time.
SPREAD = 0.8


def pytest_collection_modifyitems(items):
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    for item in items:
        is_seeded = hasattr(item, "callspec") and "seed" in item.callspec.params
        if is_seeded or is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("generated")
    places = _places(list(dict.fromkeys(item.path for item in items)), slow)
    items.sort(key=lambda item: places[item.path])


def _places(files: list[Path], slow: set[Path]) -> dict[Path, float]:
    """When each file begins, from 0 to 1: those that take longest first, and tests that wait among those that compute.

    Processes that share the work would otherwise all wait at first, and later all want the same two cores.
    """
    ranks = {folder: rank for rank, folder in enumerate((*WAITING, "integration"))}
    ordered = sorted(files, key=lambda file: (ranks.get(file.parent.name, len(ranks)), file not in slow))
    waiting = [file for file in ordered if file.parent.name in WAITING]
    computing = [file for file in ordered if file.parent.name not in WAITING]
    places = {file: place / len(computing) for place, file in enumerate(computing)}
    return places | {file: SPREAD * place / len(waiting) for place, file in enumerate(waiting)}


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes():
    """Processes that share the work make a home each; with this one's settings they would all use its database."""
    for name in ("DJANGO_SETTINGS_MODULE", "HARVESTER_HOME"):
        del os.environ[name]
    copied_database.offer()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Half characters in what a test printed cannot travel between processes."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "replace").decode()) for name, text in report.sections]
    return report


_durations = Durations()


def pytest_runtest_logreport(report):
    """Where processes share the work, the one that prints the summary receives the reports of all."""
    _durations.add(report.nodeid, report.when, report.duration)


def pytest_terminal_summary(terminalreporter, config):
    """Only a report: nothing fails because it took long."""
    if lines := _durations.per_folder():
        terminalreporter.section("durations per folder")
        for line in lines:
            terminalreporter.write_line(line)
        _durations.keep(config.rootpath / "build" / "durations.json")


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        copied_database.withdraw()
    # Pages that were read in this process: the client keeps its connections to the shops.
    if fetching := sys.modules.get("harvester.scraping.fetching"):
        fetching.close()
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(django_db_blocker):
    """The run's own database server, migrated."""
    from django.conf import settings
    from django.db import connections

    from harvester.engine.embedded import Cluster
    from harvester.ops.database import migrate
    from tests.support.tables import close_emptying, make_effects

    # What the tests kill are processes; only a machine that loses its power would miss what was not synced.
    # Whenever a table goes, all buffers are looked through, and tables of tests are small.
    options = {"fsync": "off", "shared_buffers": "64MB"}
    server = Cluster(settings.CONFIG.home, os_user=settings.CONFIG.database_os_user, options=options)
    with django_db_blocker.unblock():
        copied_database.copy_to(settings.CONFIG.home)
    with server.hold(), django_db_blocker.unblock():
        migrate()
        make_effects()
        yield server
        close_emptying()
        connections.close_all()


@pytest.fixture(scope="session")
def django_db_setup(cluster):
    """pytest-django's `db` works on the same migrated database, inside a transaction that is rolled back."""


@pytest.fixture
def database(cluster, django_db_blocker):
    """Real commits, several processes: every table is empty before the test, and for those that only look after it."""
    from django.db import connections

    from tests.support.tables import empty_all

    with django_db_blocker.unblock():
        empty_all()
        yield
        empty_all()
        connections.close_all()
