"""The kinds that every module here may use."""

from tests.support import gates, kinds  # noqa: F401 - registers the kinds
