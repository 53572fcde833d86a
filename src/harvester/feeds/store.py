"""Where the files of feeds are kept."""

from django.conf import settings

from harvester.guards.artifacts import ArtifactStore

DIRECTORY = "artifacts"


def artifact_store() -> ArtifactStore:
    """The store of this installation; several machines share it by sharing the home's directory of that name."""
    return ArtifactStore(settings.CONFIG.home / DIRECTORY)
