"""Takes the pictures of the documentation: `python -m tests.browser.pictures docs/images`."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

HOME = Path(tempfile.mkdtemp(prefix="harvester-pictures-"))
HOME.chmod(0o755)
os.environ |= {"HARVESTER_HOME": str(HOME), "DJANGO_SETTINGS_MODULE": "harvester.settings"}

import django  # noqa: E402

django.setup()

from django.conf import settings  # noqa: E402
from django.db import connections  # noqa: E402
from tests.support.browser import chromium, window  # noqa: E402
from tests.support.portal import PASSWORD, job, person  # noqa: E402
from tests.support.portal_server import portal_server  # noqa: E402
from tests.support.workers import run_until_idle  # noqa: E402

from harvester.engine.embedded import Cluster  # noqa: E402
from harvester.engine.enqueue import enqueue  # noqa: E402
from harvester.engine.job import RunningJob  # noqa: E402
from harvester.engine.registry import job_kind  # noqa: E402
from harvester.kernel.errors import TerminalError  # noqa: E402
from harvester.ops.database import migrate  # noqa: E402
from harvester.ops.models import Role  # noqa: E402

CUT = "The connection to sftp.partner.example was closed after 41 % of catalog.csv.gz; the last good data still serves."
KEY = "The host key of sftp.partner.example changed. Nothing was sent; approve the new key on the feed's page."
CAPTCHA = "The page answered 200 but looks like a captcha; no price was written."

_YESTERDAY = """
INSERT INTO jobs (kind, queue, args, priority, state, run_at, attempt, max_attempts, created_at, started_at,
                  finished_at, worker, error)
SELECT 'scrape.target', 'scrape', '{}', 0, state, at, 1, 3, at, at, at + interval '1 s', 'worker-a1',
       CASE WHEN state = 'failed' THEN %s END
FROM (SELECT CASE WHEN i %% 23 = 0 THEN 'failed' WHEN i %% 41 = 0 THEN 'cancelled' ELSE 'succeeded' END AS state,
             now() - interval '23 hours' * (1 - sqrt(i / 1500.0)) - interval '15 min' * (1 + sin(i / 90.0)) AS at
      FROM generate_series(1, 1500) AS i) AS past
"""


@job_kind("feeds.ingest", queue="feeds")
def ingest(_job: RunningJob, **_args: object) -> None:
    raise TerminalError(KEY)


@job_kind("scrape.target", queue="scrape")
def scrape(_job: RunningJob, **_args: object) -> None: ...


@job_kind("evidence.compile", queue="compile")
def compile_evidence(_job: RunningJob) -> None: ...


def fill() -> int:
    """An engine in the middle of a normal day; answers the job whose page is worth a look."""
    told = enqueue("feeds.ingest", {"feed": 7, "trigger": "schedule"}).job_id
    run_until_idle(name="worker-a1")
    with connections["owner"].cursor() as cursor:
        cursor.execute(_YESTERDAY, [CAPTCHA])
    for number in range(9):
        job("succeeded", "scrape.target", args={"url": f"https://shop.example/p/{number}"})
    job("retryable", "feeds.ingest", error=CUT)
    job("cancelled", "scrape.target")
    for number in range(4):
        job("succeeded", "feeds.ingest", args={"feed": number}, result='{"rows": 48211, "rejected": 12}')
    for done in (51_200, 18_900, 4_100):
        job("running", "feeds.ingest", progress=f'{{"done": {done}, "total": 52000, "note": "rows read"}}')
    for delay in (0, 0, 0, 0, 3600, 7200):
        job(kind="evidence.compile", delay=delay)
    return told


def take(target: Path) -> None:
    person("otto", Role.OPERATOR)
    told = fill()
    with portal_server() as address, chromium() as browser:
        context, visit = window(browser, address)

        def shoot(name: str, path: str, ready: str) -> None:
            visit.go(path)
            visit.page.wait_for_selector(ready)
            visit.page.wait_for_load_state("networkidle")
            visit.page.screenshot(path=target / f"{name}.png")

        shoot("login", "/login/", "#login-form")
        visit.log_in("otto", PASSWORD)
        visit.page.wait_for_url(f"{address}/")
        shoot("dashboard", "/", "#chart")
        shoot("jobs", "/jobs/", "#results tbody tr")
        shoot("job", f"/jobs/{told}/", "#job-body")
        context.close()


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    try:
        with Cluster(settings.CONFIG.home, os_user=settings.CONFIG.database_os_user).hold():
            migrate()
            take(target)
            connections.close_all()
    finally:
        shutil.rmtree(HOME, ignore_errors=True)


if __name__ == "__main__":
    main()
