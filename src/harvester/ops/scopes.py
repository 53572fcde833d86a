"""The scopes of API keys. Keys, the API, its reference and the forms all use this table."""

from enum import StrEnum


class Scope(StrEnum):
    """A permission of an API key."""

    OFFERS_READ = "offers:read"
    FEEDS_READ = "feeds:read"
    FEEDS_OPERATE = "feeds:operate"
    FEEDS_ADMIN = "feeds:admin"
    SCRAPE_READ = "scrape:read"
    SCRAPE_OPERATE = "scrape:operate"
    SCRAPE_ADMIN = "scrape:admin"
    JOBS_READ = "jobs:read"
    JOBS_OPERATE = "jobs:operate"

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS = {
    Scope.OFFERS_READ: "search offers that consumers see, and read their price histories",
    Scope.FEEDS_READ: "read feeds and their runs, without secrets",
    Scope.FEEDS_OPERATE: "run, test, pause and resume feeds; approve and reject held runs",
    Scope.FEEDS_ADMIN: "retire feeds; ignore runs, and undo that",
    Scope.SCRAPE_READ: "read sources that are scraped, their pages, imports and quarantine",
    Scope.SCRAPE_OPERATE: "add, import, pause, try and enqueue pages; decide about quarantine",
    Scope.SCRAPE_ADMIN: "delete pages, change many, force; switch sources, adapters and visibility; ignore page runs",
    Scope.JOBS_READ: "read progress and results of jobs",
    Scope.JOBS_OPERATE: "retry and cancel jobs",
}
