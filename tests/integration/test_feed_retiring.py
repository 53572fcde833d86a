"""Retiring a feed: what goes, what stays, and what is refused before and afterwards."""

import pytest
from django.test import Client
from tests.support.api import Application, refused
from tests.support.commands_inside import harvester
from tests.support.feed_world import OLGA, World, allow_loopback
from tests.support.portal import person
from tests.support.sftp_server import SftpServer

from harvester.engine.models import Job
from harvester.feeds import attention, verbs
from harvester.feeds.jobs import WATCH
from harvester.feeds.models import Feed, FeedRun
from harvester.guards.models import SealedSecret
from harvester.kernel.errors import Conflict
from harvester.ops import jobs
from harvester.ops.models import Alert, AuditEvent, Role
from harvester.ops.scopes import Scope

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture
def world(settings, tmp_path):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server:
        yield World(server)


def by_verb(world):
    verbs.retire(OLGA, world.feed.id)


def by_api(world):
    assert Application(Scope.FEEDS_ADMIN).write(f"/feeds/{world.feed.id}/retire").json()["retired_at"]


def by_portal(world):
    client = Client()
    client.force_login(person("ada", Role.ADMIN))
    assert "Retire this feed?" in client.get(f"/feeds/{world.feed.id}/").content.decode()
    page = client.post(f"/feeds/{world.feed.id}/retire/", follow=True).content.decode()
    assert "is retired. Its credentials were deleted" in page
    assert "Retired on" in page


def by_command(world):
    assert harvester("feed", "retire", world.source.name).code != 0
    assert Feed.objects.get().retired_at is None
    assert harvester("feed", "retire", world.source.name, "--yes").code == 0


@pytest.mark.parametrize("retire", [by_verb, by_api, by_portal, by_command])
def test_a_retired_feed_loses_its_credentials_and_keeps_what_it_brought(world, retire):
    world.put(100, 101)
    world.run()
    world.put_bytes(b"<html>Sorry</html>")
    world.run()
    assert Alert.objects.filter(resolved_at=None).count() == 1
    world.change(status="DISABLED", next_run_at=None, seen_host_key="ssh-ed25519 AAAA")
    assert attention.needs()
    retire(world)
    feed = Feed.objects.get()
    assert (feed.secret_fields, feed.username, SealedSecret.objects.count()) == ([], "", 0)
    assert FeedRun.objects.count() == 2
    assert len(world.shown()) == 2, "its offers expire as usual"
    assert not Alert.objects.filter(resolved_at=None).exists()
    assert AuditEvent.objects.filter(verb="FEED_RETIRED").count() == 1
    world.pass_time(45)
    world.work(world.job(WATCH, {}))
    assert not Alert.objects.filter(resolved_at=None).exists(), "no alert says that its offers expire"
    assert attention.needs() == []
    assert sum(attention.feeds_by_status().values()) == 0
    reader = Application(Scope.FEEDS_READ)
    assert reader.read("/feeds")["items"] == []
    assert reader.read(f"/feeds/{feed.id}")["retired_at"]
    assert harvester("feed", "list", "--json").json["feeds"] == []
    client = Client()
    client.force_login(person("vera", Role.VIEWER))
    assert f"/feeds/{feed.id}/" not in client.get("/feeds/").content.decode()


@pytest.mark.parametrize("status", ["DRAFT", "ENABLED"])
def test_only_a_paused_or_disabled_feed_is_retired(world, status):
    world.change(status=status)
    with pytest.raises(Conflict, match=status):
        verbs.retire(OLGA, world.feed.id)


@pytest.mark.parametrize("busy", ["held", "running", "deciding"])
def test_only_a_feed_that_rests_is_retired(world, busy):
    if busy == "held":
        world.hold()
    elif busy == "running":
        world.running()
    world.change(status="PAUSED", next_run_at=None)
    with pytest.raises(Conflict) as refusal:
        if busy == "deciding":
            with world.locked():
                verbs.retire(OLGA, world.feed.id)
        verbs.retire(OLGA, world.feed.id)
    assert refusal.value.code == {"held": "RUN_HELD"}.get(busy, "FEED_BUSY")
    assert Feed.objects.get().retired_at is None
    assert SealedSecret.objects.exists()


def test_nothing_can_be_done_with_a_retired_feed(world):
    world.put_bytes(b"<html>Sorry</html>")
    failed = world.run().job_id
    verbs.pause(OLGA, world.feed.id)
    verbs.retire(OLGA, world.feed.id)
    feed_id = world.feed.id
    tries = (
        lambda: verbs.resume(OLGA, feed_id),
        lambda: verbs.run_now(OLGA, feed_id),
        lambda: verbs.test_run(OLGA, feed_id),
        lambda: verbs.update(OLGA, feed_id, {"path": "/other.csv"}),
        lambda: verbs.set_expiry_hours(OLGA, feed_id, 12),
        lambda: verbs.change_credentials(OLGA, feed_id, password="new one"),
        lambda: verbs.approve_host_key(OLGA, feed_id, str(world.server.host_key)),
        lambda: verbs.retire(OLGA, feed_id),
        lambda: jobs.retry(OLGA, failed),
    )
    for attempt in tries:
        with pytest.raises(Conflict) as refusal:
            attempt()
        assert refusal.value.code == "FEED_RETIRED"
    application = Application()
    for verb in ("run", "test", "pause", "resume", "retire"):
        assert refused(application.write(f"/feeds/{feed_id}/{verb}")) == (409, "FEED_RETIRED")
    client = Client()
    client.force_login(person("ada", Role.ADMIN))
    for verb in ("run", "test", "resume", "re-enable", "retire"):
        page = client.post(f"/feeds/{feed_id}/{verb}/", {"promise": "yes"}, follow=True)
        assert page.status_code == 200
        assert "was retired on" in page.content.decode()
    edited = client.post(f"/feeds/{feed_id}/edit/", {"path": "/other.csv", "host": "sftp.example.com"})
    assert edited.status_code in (200, 302, 409)
    assert Feed.objects.get().path == world.feed.path
    assert Job.objects.filter(kind__in=("feeds.run", "feeds.test")).count() == 1
    with pytest.raises(Conflict, match="retired"):
        verbs.create(OLGA, world.source.id, {"network": "impact"})
