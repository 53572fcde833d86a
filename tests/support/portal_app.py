"""The portal's WSGI application, with the tests' kinds of jobs known to it."""

from harvester.portal.wsgi import application
from tests.support import kinds  # noqa: F401 - registers the kinds

__all__ = ["application"]
