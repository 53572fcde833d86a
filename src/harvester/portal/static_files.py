"""Static files out of the installed packages, cached by version."""

from functools import cache, cached_property
from hashlib import sha256
from importlib.metadata import version

from django.contrib.staticfiles.storage import StaticFilesStorage

import harvester


@cache
def assets_version() -> str:
    """Changes whenever one of the packages that bring assets does."""
    parts = (harvester.__version__, version("django-unfold"), version("django"))
    return sha256(" ".join(parts).encode()).hexdigest()[:8]


class VersionedStaticFiles(StaticFilesStorage):
    """Adds the version to every address, so that browsers may keep a file until the next release."""

    @cached_property
    def _known(self) -> dict[str | None, str]:
        """Every page names a dozen files, always the same."""
        return {}

    def url(self, name: str | None) -> str:
        if name not in self._known:
            self._known[name] = f"{super().url(name)}?v={assets_version()}"
        return self._known[name]
