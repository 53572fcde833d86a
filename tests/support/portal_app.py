"""The portal's WSGI application, with the tests' kinds of jobs known to it and passwords that are quick to check.

The real hasher would replace what `tests.support.portal.person` stores at every login, with a million rounds.
"""

from django.conf import settings

from harvester.portal.wsgi import application
from tests.support import kinds  # noqa: F401 - registers the kinds

settings.PASSWORD_HASHERS = ["tests.support.portal.QuickHasher"]

__all__ = ["application"]
