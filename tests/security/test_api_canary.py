"""Planted secrets are in no answer of the API, and keys of the API are in no row and no log."""

from tests.support import scraping
from tests.support.api import Application
from tests.support.feed_rows import ADMIN
from tests.support.feed_world import World, allow_loopback
from tests.support.log_lines import logged
from tests.support.sftp_server import SftpServer
from tests.support.stored import everything_stored
from tests.support.tables import rows

from harvester.api import offers
from harvester.api.app import api
from harvester.engine.models import Job
from harvester.feeds import verbs
from harvester.kernel.ids import uuid7

CANARY = "zq4417-canary-opens-sesame-7731"


def test_no_answer_has_a_credential_and_nothing_stored_has_a_key(database, settings, tmp_path, monkeypatch):
    allow_loopback(settings)
    with SftpServer(tmp_path) as server, logged() as lines:
        world = World(server)
        world.put(100)
        assert world.run().outcome == "PROMOTED"
        verbs.change_credentials(ADMIN, world.feed.id, password=CANARY)
        application = Application()
        bodies = [application.write(f"/feeds/{world.feed.id}/{verb}").content for verb in ("test", "pause", "resume")]
        world.work(Job.objects.latest("id").pk)
        bodies += _read_everything(application, world)
        monkeypatch.setattr(offers.search, "search", _careless(application.token))
        bodies.append(application.get("/api/v1/offers").content)
        output = b"".join(bodies).decode() + "\n".join(map(str, lines()))
        assert "API_REQUEST_FAILED" in output
        for secret in (CANARY, application.token[12:]):
            assert secret not in output
            assert secret not in everything_stored()


def test_no_answer_has_the_value_of_a_header_that_shops_get(database):
    source = scraping.shop()
    with logged() as lines:
        admin = Application()
        headers = {"X-Partner-Key": CANARY}
        answer = admin.change(f"/scrape/sources/{source.pk}", {"headers": headers}, **{"Idempotency-Key": "one"})
        assert answer.json()["settings"]["headers"] == ["X-Partner-Key"]
        wrong = admin.change(f"/scrape/sources/{source.pk}", {"headers": {"Cookie": CANARY}})
        assert wrong.status_code == 422
        shown = [admin.get(f"/api/v1/scrape/sources{path}").content for path in ("", f"/{source.pk}")]
        assert CANARY not in b"".join([answer.content, wrong.content, *shown]).decode() + "\n".join(map(str, lines()))
    assert CANARY in str(rows("SELECT scrape_config FROM sources")), "shops get it"
    assert CANARY not in str(rows("SELECT detail FROM audit_events"))


def _read_everything(application, world):
    offer = application.read("/offers")["items"][0]["id"]
    run = application.read("/runs")["items"][0]["id"]
    known = {"offer_id": offer, "feed_id": world.feed.id, "run_id": run, "product_id": world.feed.id}
    known |= {"source_id": world.feed.source_id, "target_id": uuid7(), "import_id": uuid7(), "entry_id": uuid7()}
    known["request_id"] = uuid7()
    paths = [path for path, methods in api.get_openapi_schema()["paths"].items() if "get" in methods]
    jobs = [application.get(f"/api/v1/jobs/{job.pk}").content for job in Job.objects.all()]
    # The file of a run comes in pieces.
    return [*jobs, *(b"".join(application.get(path.format(**known, job_id=1))) for path in paths)]


def _careless(token):
    def search(*_args):
        raise RuntimeError(f"the key {token} is odd")

    return search
