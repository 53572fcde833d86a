"""Goes through all checks, whatever each of them meets."""

from collections.abc import Callable, Iterator

from harvester.cli.checks import machine
from harvester.cli.checks.finding import Finding, fail, fine, skip
from harvester.cli.exit_codes import failure_of
from harvester.cli.session import close_connections, database_of, prepare, read_config, set_up_django
from harvester.engine.embedded import Cluster
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError

Check = Callable[[Config], Finding]

#: In the order in which they depend on each other.
LOCAL: dict[str, Check] = {
    "home": machine.home,
    "disk": machine.disk,
    "encryption key": machine.key,
    "redis": machine.redis,
    "portal": machine.portal,
}


def examine() -> Iterator[Finding]:
    """All findings, each as soon as it is known."""
    yield machine.python()
    yield machine.chromium()
    try:
        config = read_config()
        prepare(config)
    except ConfigError as error:
        yield fail("settings", str(error), "Correct it in the environment.")
        yield skip("database", "the settings cannot be read")
        return
    yield fine("settings", "all can be read; `harvester doctor --settings` lists them")
    for name, check in LOCAL.items():
        yield _careful(name, lambda check=check: check(config))  # type: ignore[misc]
    yield from _database(config)


def _careful(name: str, check: Callable[[], Finding]) -> Finding:
    """A check that breaks is a finding too."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - whatever it is, the other checks go on
        return fail(name, failure_of(error).message)


def _database(config: Config) -> Iterator[Finding]:
    if config.embedded and not config.home.is_file() and not Cluster(config.home).exists:
        yield skip("database", "there is none yet; `harvester up` or `harvester demo` creates it")
        return
    try:
        hold = database_of(config)
    except Exception as error:  # noqa: BLE001 - the finding says what happened
        yield fail("database", failure_of(error).message)
        return
    with hold:
        try:
            set_up_django()
        except ConfigError as error:
            yield fail("database", str(error))
            return
        try:
            yield from _inside(config)
        finally:
            close_connections()


def _inside(config: Config) -> Iterator[Finding]:
    from harvester.cli.checks import database

    first = _careful("database", lambda: database.server(config))
    yield first
    if first.state == "fail":
        yield skip("tables, roles, proxy, clock, workers", "the database cannot be used")
        return
    for name, check in database.CHECKS.items():
        yield _careful(name, lambda check=check: check(config))  # type: ignore[misc]
