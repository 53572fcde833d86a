"""The API, version 1."""

from harvester.api import facets, feeds, jobs, offers, runs
from harvester.api.openapi import DescribedAPI

DESCRIPTION = """
Offers that consumers see, for applications; feeds, runs and decisions, for operators. Every request needs an API key.
""".strip()

# No page with forms to try it on: those of the usual kits need scripts and styles that the portal's policy forbids.
api = DescribedAPI(
    title="Harvester",
    version="1",
    description=DESCRIPTION,
    docs_url=None,
    urls_namespace="api-v1",
    openapi_url="/openapi.json",
)
for module in (offers, facets, feeds, runs, jobs):
    api.add_router("", module.router)
