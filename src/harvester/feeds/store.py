"""The artifact store, which has the files of feeds."""

from django.conf import settings

from harvester.guards.artifacts import ArtifactStore

DIRECTORY = "artifacts"


def artifact_store() -> ArtifactStore:
    """Return the store of this installation; machines share it by sharing the directory `artifacts` of the home."""
    return ArtifactStore(settings.CONFIG.home / DIRECTORY)
