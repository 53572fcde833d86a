"""Print docs/api-reference.md. `make api-reference` writes the file."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harvester.settings")
django.setup()

from harvester.api.app import api, markdown  # noqa: E402 - needs Django

print(markdown(api.get_openapi_schema()), end="")
