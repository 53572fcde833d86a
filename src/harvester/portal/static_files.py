"""Static files of the installed packages, cached by version."""

from functools import cache, cached_property
from hashlib import sha256
from importlib.metadata import version

from django.contrib.staticfiles.storage import StaticFilesStorage

import harvester


@cache
def assets_version() -> str:
    """Return a hash of the versions of all packages with static files."""
    parts = (harvester.__version__, version("django-unfold"), version("django"))
    return sha256(" ".join(parts).encode()).hexdigest()[:8]


class VersionedStaticFiles(StaticFilesStorage):
    """Adds the version to every address, so that browsers can cache a file until the next release."""

    @cached_property
    def _urls(self) -> dict[str | None, str]:
        """A cache: every page names the same dozen files."""
        return {}

    def url(self, name: str | None) -> str:
        if name not in self._urls:
            self._urls[name] = f"{super().url(name)}?v={assets_version()}"
        return self._urls[name]
