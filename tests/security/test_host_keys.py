"""A server is believed only by a key that a person approved, and no credential leaves before that."""

import socket

import asyncssh
import pytest
from tests.support.guards import PARTNER, sftp
from tests.support.sftp_server import USERNAME, AuthAttempt, SftpServer

from harvester.guards.host_keys import HostKey, HostKeyChanged, HostKeyUnknown
from harvester.guards.remote import Credentials
from harvester.kernel.errors import ConfigError, InvalidInput, TransientError


@pytest.fixture
def server(tmp_path):
    with SftpServer(tmp_path) as running:
        yield running


@pytest.fixture(params=["password", "private key"])
def credentials(request):
    if request.param == "password":
        return PARTNER
    key = asyncssh.generate_private_key("ssh-ed25519")
    return Credentials(username=USERNAME, private_key=key.export_private_key().decode())


def another_key(kind="ssh-ed25519"):
    return HostKey.parse(asyncssh.generate_private_key(kind).export_public_key().decode())


def test_fault_16_an_unknown_key_is_reported_before_any_credential_is_sent(server, credentials):
    with pytest.raises(HostKeyUnknown) as refusal:
        sftp(server, credentials, host_keys=[])
    assert refusal.value.seen == server.host_key
    assert server.host_key.fingerprint in str(refusal.value)
    assert server.connections == 1
    assert server.attempts == []


def test_fault_16_a_changed_key_is_refused_before_any_credential_is_sent(server, credentials):
    approved = server.host_key
    server.restart_with_another_key()
    with pytest.raises(HostKeyChanged) as refusal:
        sftp(server, credentials, host_keys=[approved])
    assert refusal.value.seen == server.host_key
    assert approved.fingerprint in str(refusal.value)
    assert server.host_key.fingerprint in str(refusal.value)
    assert server.attempts == []


@pytest.mark.parametrize("error", [HostKeyUnknown, HostKeyChanged])
def test_fault_16_a_key_that_is_not_approved_is_a_config_error_and_never_retried(error):
    assert issubclass(error, ConfigError)
    assert not issubclass(error, TransientError)


def test_fault_16_an_approved_key_lets_the_credentials_go(server):
    with sftp(server, host_keys=[server.host_key]) as session:
        assert session.stat
    assert server.attempts[-1] == AuthAttempt("password", USERNAME, PARTNER.password)


def test_any_of_several_approved_keys_counts(server):
    with sftp(server, host_keys=[another_key(), server.host_key]):
        pass


def test_an_approved_key_of_another_type_is_a_changed_key(server):
    with pytest.raises(HostKeyChanged):
        sftp(server, host_keys=[another_key("ecdsa-sha2-nistp256")])
    assert server.attempts == []


@pytest.mark.parametrize("kind", ["ssh-rsa", "ecdsa-sha2-nistp256", "ssh-ed25519"])
def test_a_server_with_several_keys_shows_the_approved_one(tmp_path, kind):
    with SftpServer(tmp_path, host_key_types=("ssh-rsa", "ecdsa-sha2-nistp256", "ssh-ed25519")) as server:
        (approved,) = [key for key in server.host_keys if key.type == kind]
        with sftp(server, host_keys=[approved]):
            pass


def test_a_server_that_gets_another_key_in_addition_to_the_approved_one_still_works(tmp_path):
    with (
        SftpServer(tmp_path, host_key_types=("ssh-rsa", "ssh-ed25519")) as server,
        sftp(server, host_keys=[server.host_keys[0]]),
    ):
        pass


def test_the_user_s_own_known_hosts_file_configuration_and_keys_count_for_nothing(server, tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "known_hosts").write_text(f"* {server.host_key}\n[127.0.0.1]:{server.port} {server.host_key}\n")
    was_read = tmp_path / "config-was-read"
    (home / ".ssh" / "config").write_text(f'Match exec "touch {was_read}"\nUser somebody\n')
    own = asyncssh.generate_private_key("ssh-ed25519")
    own.write_private_key(home / ".ssh" / "id_ed25519")
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(HostKeyUnknown):
        sftp(server, host_keys=[])
    with sftp(server):
        pass
    assert [attempt.method for attempt in server.attempts] == ["none", "password"]
    assert {attempt.username for attempt in server.attempts} == {USERNAME}
    assert not was_read.exists()


def test_no_agent_is_asked(server, tmp_path, monkeypatch):
    key = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()
    place = tmp_path / "agent"
    monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(place))
        agent.listen()
        agent.settimeout(0)
        with sftp(server, Credentials(username=USERNAME, password=PARTNER.password, private_key=key)):
            pass
        with pytest.raises(BlockingIOError):
            agent.accept()


def test_a_fingerprint_is_the_one_that_openssh_shows():
    private = asyncssh.generate_private_key("ssh-ed25519")
    key = HostKey.parse(private.export_public_key("openssh").decode())
    assert key.fingerprint == private.get_fingerprint("sha256")
    assert HostKey.parse(str(key)) == key
    assert HostKey.parse(f"  {key}  a comment\n") == key


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 AAAA",
        "ssh-rsa {good}",
        "ssh-ed25519 {good}=",
        "ssh-ed25519 !{good}",
        "{good}",
        "host ssh-ed25519 {good}",
        "ssh-ed25519 " + "A" * 10_000,
    ],
)
def test_what_is_no_host_key_is_refused(text):
    good = another_key().base64
    with pytest.raises(InvalidInput, match="host key"):
        HostKey.parse(text.format(good=good))
