"""Debian's chromium, driven by playwright, with an ear for everything that goes wrong in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

#: The same browser without a desktop around it takes a quarter less time, where Debian has it.
CHROMIUM = shutil.which("chromium-headless-shell") or "/usr/bin/chromium"
#: Parts of the browser that no page has. The pop-up of the address bar is a page in a process of its own for every
#: window, and a spare process waits for each page: together a third of all the time that a test takes.
WITHOUT = ("SpareRendererForSitePerProcess", "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
#: What playwright leaves out by itself. The browser hears only the last flag of that name, so it is said again.
WITHOUT_ANYWAY = (
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--disable-features={','.join((*WITHOUT, *WITHOUT_ANYWAY))}",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    # Playwright keeps an event loop in this thread, and Django would refuse to query the database next to one.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@dataclass
class Visit:
    """One person's browser window on the portal.

    Attributes:
        page: the window.
        base: the portal's address.
        expected: pieces of complaints that the test provokes on purpose.
        complaints: what the console said, what scripts raised, what was asked of other hosts.
    """

    page: Page
    base: str
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda said: self._note(said.type in ("error", "warning"), f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self._note(True, f"script: {error}"))
        self.page.on("request", lambda asked: self._note(not self._is_ours(asked.url), f"elsewhere: {asked.url}"))

    def _is_ours(self, address: str) -> bool:
        return address.startswith((f"{self.base}/", "data:"))

    def _note(self, wrong: bool, what: str) -> None:
        if wrong:
            self.complaints.append(what)

    def unexpected(self) -> list[str]:
        return [said for said in self.complaints if not any(piece in said for piece in self.expected)]

    def go(self, path: str) -> None:
        self.page.goto(f"{self.base}{path}")

    def log_in(self, username: str, password: str) -> None:
        self.go("/login/")
        self.page.get_by_label("Username").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()


def window(browser: Browser, base: str, **options) -> tuple[BrowserContext, Visit]:
    context = browser.new_context(viewport={"width": 1360, "height": 850}, **options)
    return context, Visit(context.new_page(), base)
