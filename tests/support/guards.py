"""What tests of the guards share: a policy that allows this machine, short patience, and credentials."""

from dataclasses import replace
from ipaddress import ip_network

from harvester.guards.egress import EgressPolicy
from harvester.guards.ftp import FtpSession, connect_ftp
from harvester.guards.remote import Credentials, TransferLimits
from harvester.guards.sftp import SftpSession, connect_sftp
from tests.support import ftp_server, sftp_server

LOOPBACK = EgressPolicy([ip_network("127.0.0.0/8"), ip_network("::1/128")])
PARTNER = Credentials(username=sftp_server.USERNAME, password=sftp_server.PASSWORD)
#: For servers that never say another word: however slow the machine is, waiting ends in the same error.
IMPATIENT = TransferLimits(connect=0.5, login=0.5, idle=0.3)
#: For servers that let a client in and fall silent later: only the silence may end the test.
PATIENT_AT_FIRST = TransferLimits(connect=120, login=120, idle=1)
#: For servers that are meant to fail by sending too little.
HASTY = TransferLimits(idle=30, rate_window=0.2, least_rate=1000)
CAP = 100_000_000


def sftp(server: sftp_server.SftpServer, credentials: Credentials = PARTNER, **options) -> SftpSession:
    """A session with a test server whose key was approved.

    The credentials are created again, as for a run: another test may have let the redaction forget them.
    """
    settings = {"host_keys": server.host_keys, "policy": LOOPBACK, **options}
    return connect_sftp(sftp_server.HOST, server.port, replace(credentials), **settings)


def ftp(server: ftp_server.FtpServer, credentials: Credentials = PARTNER, **options) -> FtpSession:
    """A session with a test server, plain FTP being allowed."""
    settings = {"allow_plain_ftp": True, "policy": LOOPBACK, **options}
    return connect_ftp(ftp_server.HOST, server.port, replace(credentials), **settings)
