"""A planted secret is looked for wherever it could have got to."""

import io
import json

import pytest
import structlog
from django.db import transaction
from tests.support.stored import everything_stored
from tests.support.tables import rows
from tests.support.waiting import wait_for
from tests.support.workers import worker_thread

from harvester.engine.enqueue import enqueue
from harvester.engine.errors import SecretInArgs
from harvester.engine.job import RunningJob
from harvester.engine.registry import job_kind
from harvester.guards import secrets
from harvester.guards.logs import configure_logging
from harvester.kernel.actor import system
from harvester.kernel.errors import TransientError
from harvester.kernel.ids import uuid7
from harvester.kernel.retry import RetryPolicy
from harvester.ops import audit

CANARY = "tweety-9f3b-canary"
OWNER = uuid7()


@job_kind("canary.leak", retry=RetryPolicy(base=0.1, attempts=2))
def leak(job: RunningJob) -> dict[str, str]:
    """Do everything a careless handler could do with a secret."""
    document = secrets.open_document("feed", OWNER)
    structlog.get_logger("canary").warning("LEAKING", host="example.org", login=document["password"])
    job.progress(1, 2, note=f"logging in with {document['password']}")
    wait_for(lambda: rows("SELECT progress IS NOT NULL FROM jobs WHERE id = %s", job.id)[0][0], "the progress")
    with job.transaction():
        audit.record(system("canary"), "LEAKED", "feed", OWNER, detail={"said": document["password"]})
    if job.attempt == 1:
        raise TransientError(f"login failed for ftp://user:{document['password']}@example.org")
    return {"used": document["password"]}


@pytest.fixture
def log_lines():
    stream = io.StringIO()
    configure_logging("debug", "json", stream=stream)
    yield lambda: stream.getvalue().splitlines()
    configure_logging("warning", "json")


def test_a_planted_secret_is_in_no_log_line_and_no_row(database, log_lines):
    with transaction.atomic():
        secrets.put("feed", OWNER, {"password": CANARY})
    job_id = enqueue("canary.leak").job_id

    with worker_thread():
        wait_for(lambda: rows("SELECT state FROM jobs WHERE id = %s", job_id) == [("succeeded",)], "the second attempt")

    stored = everything_stored()
    lines = log_lines()
    assert "LEAKED" in stored, "the handler has run"
    assert str(job_id) in stored
    assert any(json.loads(line)["event"] == "LEAKING" for line in lines), "and has logged"
    assert CANARY not in stored
    assert CANARY not in "\n".join(lines)


def test_a_secret_cannot_be_put_into_a_job(database):
    with transaction.atomic():
        secrets.put("feed", OWNER, {"password": CANARY})

    for args in ({"password": "x"}, {"deep": [{"api_key": "x"}]}, {"note": f"use {CANARY}"}):
        with pytest.raises(SecretInArgs) as refused, transaction.atomic():
            enqueue("canary.leak", args)
        assert CANARY not in str(refused.value)
    assert CANARY not in everything_stored()
