"""Which failures are tried again: each row of the contract's table, from what a server does to how the run ends."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import pytest
from tests.support import ftp_server, sftp_server
from tests.support.feed_world import LOOPBACK, World
from tests.support.ftp_server import FtpServer
from tests.support.jobs import change
from tests.support.log_lines import logged
from tests.support.sftp_server import SftpServer
from tests.support.workers import run_until_idle

from harvester.engine.models import Job
from harvester.feeds import fetch
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import open_remote
from harvester.guards import egress, host_keys, remote, secrets
from harvester.kernel.errors import ConfigError, TerminalError, TransientError
from harvester.runs.models import Run

pytestmark = pytest.mark.usefixtures("database")

IMPATIENT = remote.TransferLimits(connect=120, login=120, idle=1)
NOBODY_LISTENS = 1


class Partner:
    """A partner whose servers a row of the table puts in order."""

    def __init__(self, root, settings, stack, monkeypatch):
        self.root, self._stack, self._settings = root, stack, settings
        settings.CONFIG = replace(settings.CONFIG, egress_allow=LOOPBACK, allow_plain_ftp=True)
        monkeypatch.setattr(fetch, "open_remote", partial(open_remote, limits=IMPATIENT))
        self._monkeypatch = monkeypatch
        self.sftp()

    def sftp(self, behaviour=sftp_server.WellBehaved, **options):
        self.server = self._stack.enter_context(SftpServer(self.root, behaviour=behaviour, **options))
        if not hasattr(self, "world"):
            self.world = World(self.server)
        self.point(port=self.server.port, host_keys=str(self.server.host_key))

    def ftp(self, behaviour=ftp_server.WellBehaved, **columns):
        server = self._stack.enter_context(FtpServer(self.root, behaviour=behaviour))
        self.point(transport="FTP", port=server.port, **columns)

    def point(self, **columns):
        Feed.objects.update(**columns)

    def password(self, text):
        secrets.put("feed", self.world.feed.id, {"password": text})

    def says(self, data):
        self.world.put_bytes(data)

    def raises(self, error):
        """What no server of this machine can be made to do."""

        def fail(feed):
            raise error

        self._monkeypatch.setattr(fetch, "open_remote", fail)


ROWS = {
    "network timeout: silence": (
        *("transient", "REMOTE_TIMEOUT"),
        lambda partner: partner.sftp(sftp_server.stops_answering_at(0)),
    ),
    "network timeout: reset, SFTP": (
        *("transient", "CONNECTION_LOST"),
        lambda partner: partner.sftp(sftp_server.drops_connection_at(0)),
    ),
    "network timeout: reset, FTP": (
        *("transient", "CONNECTION_LOST"),
        lambda partner: partner.ftp(ftp_server.drops_connection_at(0)),
    ),
    "connection refused": (
        *("transient", "CONNECTION_REFUSED"),
        lambda partner: partner.point(port=NOBODY_LISTENS),
    ),
    "no such host": (
        *("transient", "DNS_FAILED"),
        lambda partner: partner.raises(egress.NameNotResolved("There is no shop.example.")),
    ),
    "server busy: FTP 421": (
        *("transient", "REMOTE_BUSY"),
        lambda partner: partner.ftp(ftp_server.answers(RETR="421 too many users")),
    ),
    "server busy: SFTP": (
        *("transient", "REMOTE_BUSY"),
        lambda partner: partner.sftp(sftp_server.FailsForNoReason),
    ),
    "server busy: no SFTP channel": ("transient", "REMOTE_BUSY", lambda partner: partner.sftp(None)),
    "temporary file error: FTP 450": (
        *("transient", "REMOTE_BUSY"),
        lambda partner: partner.ftp(ftp_server.answers(RETR="450 file busy")),
    ),
    "temporary file error: FTP 452": (
        *("transient", "REMOTE_BUSY"),
        lambda partner: partner.ftp(ftp_server.answers(RETR="452 no space")),
    ),
    "authentication: FTP 530": (
        *("permanent", "AUTH_FAILED"),
        lambda partner: (partner.ftp(ftp_server.FailsLoginAtOnce), partner.password("wrong")),
    ),
    "authentication: SFTP": ("permanent", "AUTH_FAILED", lambda partner: partner.password("wrong")),
    "permission denied: FTP 550": (
        *("permanent", "PERMISSION_DENIED"),
        lambda partner: partner.ftp(ftp_server.answers(RETR="550 permission denied")),
    ),
    "permission denied: SFTP": (
        *("permanent", "PERMISSION_DENIED"),
        lambda partner: partner.sftp(sftp_server.RefusesToRead),
    ),
    "file not found: FTP 550": (
        *("permanent", "REMOTE_FILE_NOT_FOUND"),
        lambda partner: partner.ftp(path="/Shop/nothing.txt"),
    ),
    "file not found: SFTP": (
        *("permanent", "REMOTE_FILE_NOT_FOUND"),
        lambda partner: partner.point(path="/Shop/nothing.txt"),
    ),
    "parse error: empty": ("permanent", "EMPTY_FILE", lambda partner: partner.says(b"\n")),
    "parse error: a web page": (
        *("permanent", "HTML_INSTEAD_OF_CSV"),
        lambda partner: partner.says(b"<!doctype html><html><body>maintenance</body></html>"),
    ),
    "parse error: no known encoding": (
        *("permanent", "ENCODING_UNREADABLE"),
        lambda partner: partner.says("SKU\tName\n".encode("utf-32")),
    ),
    "invalid format: other columns": (
        *("permanent", "HEADER_UNREADABLE"),
        lambda partner: partner.says(b"colour\tsize\nred\t5\n"),
    ),
    "invalid format: no row of use": (
        *("permanent", "NO_VALID_PRODUCTS"),
        lambda partner: partner.says(b"SKU\tName\tUrl\tPrice\n1\tx\tnowhere\t5 USD\n"),
    ),
    "certificate: a host key that nobody approved": (
        *("config", "HOST_KEY_UNKNOWN"),
        lambda partner: partner.point(host_keys=""),
    ),
    "certificate: another host key": (
        *("config", "HOST_KEY_CHANGED"),
        lambda partner: partner.server.restart_with_another_key(),
    ),
    "protocol: FTP where SFTP is expected": (
        *("config", "PROTOCOL_MISMATCH"),
        lambda partner: partner.ftp() or partner.point(transport="SFTP"),
    ),
    "protocol: SFTP where FTP is expected": (
        *("config", "PROTOCOL_MISMATCH"),
        lambda partner: partner.point(transport="FTP"),
    ),
    "protocol: SSH without SFTP": (
        *("config", "PROTOCOL_MISMATCH"),
        lambda partner: partner.sftp(None, process_factory=lambda process: process.exit(0)),
    ),
    "anything unknown": ("transient", "UNEXPECTED", lambda partner: partner.raises(RuntimeError("who knows"))),
}
KINDS = {"transient": TransientError, "permanent": TerminalError, "config": ConfigError}


@pytest.fixture
def partner(settings, tmp_path, monkeypatch):
    with ExitStack() as stack:
        made = Partner(tmp_path, settings, stack, monkeypatch)
        made.world.put(100)
        yield made


@pytest.mark.parametrize(("kind", "code", "happens"), ROWS.values(), ids=ROWS)
def test_a_failure_is_tried_again_only_where_that_may_help(partner, kind, code, happens):
    happens(partner)
    with logged() as lines:
        run = partner.world.run()
    attempts = 3 if kind == "transient" else 1
    assert (run.status, run.error_code, run.attempt) == ("FAILED", code, attempts), run.error
    job = Job.objects.get(pk=run.job_id)
    assert (job.state, job.attempt) == ("failed", attempts)
    assert Feed.objects.get().consecutive_failures == 1, "counted once, however often it was tried"
    skipped = [line for line in lines() if line["event"] == "RETRY_SKIPPED"]
    assert [line["classification"] for line in skipped] == ([] if kind == "transient" else [kind])
    assert all(line["hint"] and line["code"] == code for line in skipped)


#: Errors that a run can meet and that need more than a server of this machine to come about.
TYPES = {
    egress.ConnectTimedOut: "transient",
    egress.ResolutionTimedOut: "transient",
    egress.HostUnreachable: "transient",
    egress.EgressRefused: "config",
    egress.InvalidHost: "config",
    remote.FileChanged: "transient",
    remote.TruncatedDownload: "transient",
    remote.TransferTooSlow: "transient",
    remote.TransferTooLong: "transient",
    remote.NotAFile: "permanent",
    remote.FileSizeLimitExceeded: "permanent",
    remote.PlainFtpForbidden: "config",
    remote.InvalidPrivateKey: "config",
    host_keys.HostKeyUnknown: "config",
    host_keys.HostKeyChanged: "config",
}


@pytest.mark.parametrize(("error", "kind"), TYPES.items(), ids=[error.code for error in TYPES])
def test_whether_to_try_again_is_a_property_of_the_type(error, kind):
    assert issubclass(error, KINDS[kind])
    assert issubclass(error, ConfigError) == (kind == "config")


def test_a_run_that_was_helped_shows_no_error(partner):
    partner.sftp(sftp_server.drops_connection_at(0))
    job = partner.world.ask()
    run_until_idle()
    waiting = Run.objects.get(job_id=job)
    assert (waiting.status, waiting.error_code, waiting.stage) == ("RUNNING", "CONNECTION_LOST", "download")
    assert partner.world.figures(waiting).run.next_try_at is not None
    partner.sftp()
    change(job, "run_at = now()")
    partner.world.work(job)
    run = Run.objects.get(job_id=job)
    assert (run.outcome, run.error_code, run.error, run.attempt) == ("PROMOTED", None, None, 2)
    assert partner.world.figures(run).run.next_try_at is None
