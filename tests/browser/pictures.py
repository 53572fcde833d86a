"""`make pictures`: take the pictures of the README from the demo."""

import re
import signal
import sys
from pathlib import Path

from playwright.sync_api import Page
from tests.support.browser import chromium, window
from tests.support.command import empty_home, running

#: Picture -> address of the page, and what must be on it.
TOUR = {
    "dashboard": ("/", "#needs"),
    "feeds": ("/feeds/", "#results tbody tr"),
    "held-run": ("/runs/4/", "#difference tbody tr"),
    "offer": ("/offers/?q=tarn+tent", "#results tbody tr, .hv-results tbody tr"),
    "shop": ("/shops/?q=ridge", "#results tbody tr, .hv-results tbody tr"),
    "quarantine": ("/quarantine/", "#results tbody tr, .hv-results tbody tr"),
}
#: Lists of which the first object is opened -> what its page must have.
OPENED = {"offer": "canvas", "shop": "#readiness", "quarantine": "#page-text mark"}


def take(page: Page, base: str, target: Path) -> None:
    for name, (path, ready) in TOUR.items():
        page.goto(f"{base}{path}")
        page.wait_for_selector(ready)
        if name in OPENED:
            page.locator("tbody a").first.click()
            page.wait_for_selector(OPENED[name])
        page.wait_for_load_state("networkidle")
        page.screenshot(path=target / f"{name}.png")


def main() -> None:
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    with empty_home() as home, running("demo", "--port", 0, HARVESTER_HOME=str(home)) as demo:
        demo.says("All results are as expected")
        base = re.search(r"portal +(http://\S+)/", demo.out).group(1)  # type: ignore[union-attr]
        username, password = (home / "demo-login.txt").read_text().split()[:2]
        with chromium() as browser:
            context, visit = window(browser, base)
            visit.log_in(username, password)
            visit.page.wait_for_url(f"{base}/")
            take(visit.page, base, target)
            context.close()
        demo.signal(signal.SIGINT)
        demo.ends()


if __name__ == "__main__":
    main()
