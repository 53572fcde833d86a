"""The jobs of scraping. What they do is imported when one of them runs."""

from typing import Final

from harvester.engine.registry import Later, job_kind, periodic
from harvester.kernel.retry import RetryPolicy
from harvester.ops.jobs import Hooks, add_hooks

PAGE: Final = "scraping.page"
TICK: Final = "scraping.tick"
STALE: Final = "scraping.stale_pages"
IMPORT: Final = "scraping.import"
JUDGE: Final = "scraping.judge_rests"
FORGET: Final = "scraping.forget_judged"
FETCH: Final = "scraping.fetch"
CHECK_ROBOTS: Final = "scraping.check_robots"
CLEAN_UP: Final = "scraping.clean_up"
BACKTEST: Final = "scraping.backtest"
HINTS: Final = "scraping.hints"
QUEUE: Final = "pages"
RETRY: Final = RetryPolicy(base=1.0, factor=2.0, cap=30.0, attempts=3)


def register() -> None:
    job_kind(TICK, queue="maintenance", urgent=True)(Later("harvester.scraping.schedule:tick"))
    periodic("pages that are due", kind=TICK, cron="* * * * *")
    job_kind(STALE, queue="maintenance", timeout=600.0)(Later("harvester.scraping.stale_pages:take_out"))
    periodic("pages that wait too long", kind=STALE, cron="13 * * * *")
    job_kind(IMPORT, queue="maintenance", retry=RETRY)(Later("harvester.scraping.imports:import_pages"))
    # There are very many of them, and runs show their outcomes for longer.
    job_kind(PAGE, queue=QUEUE, retry=RETRY, keep_days=1)(Later("harvester.runs.parts:execute_part"))
    again, cancelled = Later("harvester.runs.parts:start_again"), Later("harvester.runs.parts:job_cancelled")
    add_hooks(PAGE, Hooks(start_again=again, cancelled=cancelled))
    job_kind(JUDGE, queue="maintenance", timeout=300.0)(Later("harvester.scraping.runs:judge_rests"))
    periodic("pages that wait to be judged", kind=JUDGE, cron="* * * * *")
    job_kind(FORGET, queue="maintenance", timeout=300.0)(Later("harvester.scraping.judging:forget_judged"))
    periodic("old batches and quarantine", kind=FORGET, cron="37 3 * * *")
    job_kind(FETCH, queue=QUEUE, retry=RETRY, keep_days=1)(Later("harvester.scraping.single_fetches:execute"))
    job_kind(CHECK_ROBOTS, queue="maintenance", timeout=300.0)(Later("harvester.scraping.single_fetches:check_robots"))
    periodic("sources that robots.txt switched off", kind=CHECK_ROBOTS, cron="23 * * * *")
    job_kind(CLEAN_UP, queue="maintenance", timeout=3600.0)(Later("harvester.scraping.kept_pages:clean_up"))
    periodic("old pages", kind=CLEAN_UP, cron="43 * * * *")
    # A person waits for them; each reads kept pages only.
    job_kind(BACKTEST, queue="maintenance", timeout=600.0)(Later("harvester.scraping.overrides:run_test"))
    job_kind(HINTS, queue="maintenance", timeout=600.0)(Later("harvester.scraping.overrides:run_hints"))
