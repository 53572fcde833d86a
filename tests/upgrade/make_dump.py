"""`make release-dump VERSION=0.1.0`: write the dump from which tests upgrade to later versions."""

import logging
import os
import sys
import tempfile
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
HEAD = """-- Harvester {version}: its schema and an example of its rows, which tests upgrade to the newest version.
-- Written by `make release-dump VERSION={version}` when it was released; never changed afterwards.

"""


def made(version: str) -> str:
    """Migrate the database of this process, which is empty, fill it, and return its dump."""
    from django.db import connections
    from tests.upgrade.example import MOMENT, fill
    from tests.upgrade.sql_dump import dump

    from harvester.ops.database import migrate

    migrate()
    with tempfile.TemporaryDirectory() as root:
        replaced = fill(Path(root))
    with connections["owner"].cursor() as cursor:
        text = dump(cursor, date.fromisoformat(MOMENT[:10]))
    for old, new in replaced.items():
        text = text.replace(old, new)
    return HEAD.format(version=version) + text


def main(version: str) -> None:
    with tempfile.TemporaryDirectory(prefix="harvester-") as home:
        # The server's unprivileged user has to reach it.
        Path(home).chmod(0o755)
        os.environ.update(HARVESTER_HOME=home, DJANGO_SETTINGS_MODULE="harvester.settings")
        import django

        django.setup()
        logging.disable()
        from django.conf import settings
        from django.db import connections
        from tests.support.feed_world import loopback_allowed

        from harvester.engine.embedded import Cluster

        with Cluster(settings.CONFIG.home, os_user=settings.CONFIG.database_os_user).hold(), loopback_allowed():
            text = made(version)
            connections.close_all()
    (HERE / f"{version}.sql").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
