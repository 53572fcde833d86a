"""People and jobs for tests of the portal."""

from collections.abc import Iterator
from typing import Any

from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection
from django.urls import URLPattern, URLResolver

from harvester.engine.enqueue import enqueue
from harvester.ops.models import AuditEvent, Role, User
from tests.support import kinds  # noqa: F401 - registers the kinds

PASSWORD = "a long walk in the hills"
#: How the portal says that something happened during the test, however slow the machine is.
MOMENTS_AGO = r"(just now|\d+ s ago)"


class QuickHasher(PBKDF2PasswordHasher):
    """Checks a password as the real one does, without taking its time."""

    iterations = 1


_PUT = """
UPDATE jobs SET state = %(state)s, attempt = %(attempt)s, worker = %(worker)s, error = %(error)s,
    error_type = CASE WHEN %(error)s::text IS NULL THEN NULL ELSE 'TERMINAL' END, traceback = %(traceback)s,
    progress = %(progress)s::jsonb, result = %(result)s::jsonb,
    lease = CASE WHEN %(state)s = 'running' THEN gen_random_uuid() END,
    started_at = now(), heartbeat_at = now() - %(silent)s * interval '1 second',
    finished_at = CASE WHEN %(state)s IN ('succeeded', 'failed', 'cancelled') THEN now() END
WHERE id = %(id)s
"""


def person(username: str, role: Role, *, active: bool = True) -> User:
    """A user with a password that is quick to check, which no real one is."""
    quick = QuickHasher().encode(PASSWORD, "salt")
    return User.objects.create(username=username, role=role, password=quick, is_active=active, is_staff=True)


def job(state: str = "pending", kind: str = "test.noop", **facts: Any) -> int:
    """A job that is in this state without anybody having worked."""
    known = {"attempt": 1, "worker": "worker-1", "error": None, "traceback": None, "progress": None, "result": None}
    about = {name: facts.pop(name, default) for name, default in {**known, "silent": 0}.items()}
    job_id = enqueue(kind, facts.pop("args", None), **facts).job_id
    if state != "pending":
        with connection.cursor() as cursor:
            cursor.execute(_PUT, {"id": job_id, "state": state, **about})
    return job_id


def state_of(job_id: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT state FROM jobs WHERE id = %s", [job_id])
        return cursor.fetchone()[0]


def verbs(**wanted: Any) -> list[str]:
    """Verbs of the audit log, in the order in which they were done."""
    return list(AuditEvent.objects.filter(**wanted).order_by("id").values_list("verb", flat=True))


def addresses(patterns: list[Any], prefix: str = "/") -> Iterator[str]:
    """Every address of a URL map, as it is written there."""
    for pattern in patterns:
        here = f"{prefix}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, here)
        elif isinstance(pattern, URLPattern):
            yield here
