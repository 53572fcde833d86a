"""Health checks and metrics: /healthz, /readyz, /metrics."""

from dataclasses import replace

import pytest
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from tests.support.portal import job

from harvester.ops import metrics
from harvester.portal import probes

TOKEN = "a-token-for-metrics"


@pytest.fixture
def with_token(settings):
    settings.CONFIG = replace(settings.CONFIG, metrics_token=TOKEN)


def test_alive_needs_no_database(client):
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_probes_come_by_any_host_name(client, db, address):
    assert client.get(address, headers={"Host": "10.1.2.3:8000"}).status_code == 200


@pytest.mark.parametrize("address", ["/healthz", "/readyz", "/metrics"])
def test_probes_leave_no_session_and_no_cookie(client, db, address):
    answer = client.get(address)
    assert answer.status_code == 200
    assert not answer.cookies
    assert Session.objects.count() == 0


def test_ready_when_the_database_has_this_versions_tables(client, db):
    assert client.get("/readyz").json() == {"status": "ready"}


def test_not_ready_while_migrations_are_pending(client, db, monkeypatch):
    monkeypatch.setattr(probes, "pending_migrations", lambda: ["ops.0009_more"])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["reason"] == "Pending migrations: 1. Run `harvester migrate`."


def test_not_ready_without_a_database_and_silent_about_where_it_is(client, monkeypatch):
    class Away:
        def cursor(self):
            raise DatabaseError("connection to server at db.internal, user harvester, password hunter2 failed")

    monkeypatch.setattr(probes, "connection", Away())
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "reason": "The database does not respond."}


def test_metrics_report_queues_and_states(client, db):
    job(queue="feeds")
    answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert 'harvester_queue_waiting{queue="feeds"} 1.0' in answer.content.decode()


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ({}, 200),
        ({"REMOTE_ADDR": "::1"}, 200),
        ({"REMOTE_ADDR": "127.9.9.9"}, 200),
        ({"REMOTE_ADDR": "192.0.2.1"}, 403),
        ({"REMOTE_ADDR": ""}, 403),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403),
        ({"HTTP_FORWARDED": "for=127.0.0.1"}, 403),
        ({"HTTP_X_REAL_IP": "127.0.0.1"}, 403),
        ({"HTTP_HOST": "rebound.example"}, 400),
    ],
)
def test_without_a_token_only_this_machine_reads_metrics(client, db, extra, status):
    assert client.get("/metrics", **extra).status_code == status


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer {TOKEN}", 200),
        ("Bearer wrong", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer ", 401),
        ("Bearer ümläut", 401),
        ("", 401),
    ],
)
def test_with_a_token_only_its_bearers_read_metrics(client, db, with_token, given, status):
    answer = client.get("/metrics", REMOTE_ADDR="192.0.2.1", headers={"Authorization": given})
    assert answer.status_code == status
    assert TOKEN not in answer.content.decode()


def test_a_token_counts_on_this_machine_too(client, db, with_token):
    assert client.get("/metrics").status_code == 401


def test_metrics_without_a_database_are_unavailable(client, db, monkeypatch):
    def refuse():
        raise DatabaseError("password hunter2")

    monkeypatch.setattr(metrics, "exposition", refuse)
    answer = client.get("/metrics")
    assert (answer.status_code, answer.content) == (503, b"The database does not respond.\n")
