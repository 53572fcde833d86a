"""Only public addresses are connected, and those that the operator allowed; checked once, on the very address."""

import socket
import threading
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.guards import PARTNER

from harvester.guards import egress
from harvester.guards.egress import (
    ConnectionRefused,
    ConnectTimedOut,
    EgressPolicy,
    EgressRefused,
    HostUnreachable,
    InvalidHost,
    NameNotResolved,
    ResolutionTimedOut,
)
from harvester.guards.ftp import connect_ftp
from harvester.guards.hosts import read_host
from harvester.guards.sftp import connect_sftp
from harvester.kernel.config import Config
from harvester.kernel.errors import ConfigError, TransientError
from harvester.kernel.special_networks import special_reason

PUBLIC = "93.184.215.14"
PUBLIC_V6 = "2606:2800:21f:cb07::1"

FORBIDDEN = [
    "0.0.0.0", "0.1.2.3",
    "10.0.0.1", "10.255.255.255",
    "100.64.0.1", "100.127.255.255", "100.100.100.200",
    "127.0.0.1", "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1", "169.254.169.254",
    "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.0.192", "192.0.2.1",
    "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1",
    "192.168.0.1", "192.168.255.255",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1",
    "::ffff:127.0.0.1", "::ffff:93.184.215.14", "::ffff:0:127.0.0.1", "::127.0.0.1", "::10.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::5db8:d70e", "64:ff9b:1::1",
    "100::1", "100:0:0:1::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff::1",
    "2001:db8::1", "3fff::1", "3fff:fff:ffff::1",
    "2002:7f00:1::1", "2002:5db8:d70e::1",
    "2620:4f:8000::1", "5f00::1",
    "fc00::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1",
    "4000::1", "8000::1", "e000::1", "1000::1",
]  # fmt: skip
JUST_OUTSIDE = [
    "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
    "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
    "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
    "2000::1", "2001:200::1", "2001:db7:ffff::1", "2001:db9::1", "2003::1", "2606:4700::1", "3ffe::1", "3fff:1000::1",
    "2620:4f:7fff::1", "2620:4f:8001::1", PUBLIC, PUBLIC_V6,
]  # fmt: skip


def answering(*answers):
    """A resolver that gives one answer after the other."""
    left = list(answers)
    return lambda name: left.pop(0)


def policy_for(*addresses, allowed=()):
    return EgressPolicy([ip_network(network) for network in allowed], resolver=lambda name: addresses)


@pytest.mark.parametrize("address", FORBIDDEN)
def test_fault_17_a_special_address_is_refused_as_it_is_and_behind_a_name(address):
    with pytest.raises(EgressRefused, match="HARVESTER_EGRESS_ALLOW"):
        EgressPolicy().resolve(address, 22)
    with pytest.raises(EgressRefused, match=r"files\.example\.com leads to"):
        policy_for(address).resolve("files.example.com", 22)


@pytest.mark.parametrize("address", JUST_OUTSIDE)
def test_fault_17_public_addresses_pass_up_to_the_edges_of_the_special_networks(address):
    assert special_reason(ip_address(address)) is None
    assert [str(checked.address) for checked in EgressPolicy().resolve(address, 22)] == [str(ip_address(address))]


@pytest.mark.parametrize(
    "host",
    [
        "0177.0.0.1", "0x7f.0.0.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.1", "127.0.1", "1",
        "127.0.0.1.1", "127.0.0.256", "127.0.0.01", "0", "0x", "1.2.3.0x4", "[127.0.0.1]", "example.com.0x7f",
        "user@example.com", "user:secret@example.com", "127.0.0.1@example.com", "example.com:22", "[::1]:22",
        "", " ", " example.com", "example.com ", "exa mple.com", "example.com\n", "exam\tple.com", "exa\0mple.com",
        "example.com/path", "example.com?x", "example.com#x", "example.com\\x", "https://example.com", "file:///etc",
        "%31%32%37.0.0.1", "fe80::1%lo", "[fe80::1%25lo]", "::1]", "[::1", "..", ".", ".example.com", "a..b",
        "example.com..", "-a.example.com", "a-.example.com", f"{'a' * 64}.example.com", f"{'a.' * 127}com",
        "x" * 10_000, "\u200b", "exa\u2028mple.com",
    ],
)  # fmt: skip
def test_fault_17_an_odd_host_is_refused_before_anything_is_resolved(host):
    policy = EgressPolicy([ip_network("127.0.0.0/8")], resolver=lambda name: pytest.fail("resolved"))
    with pytest.raises(InvalidHost) as refusal:
        policy.resolve(host, 22)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    "host",
    ["127。0。0。1", "①②⑦.0.0.1", "１２７．０．０．１", "127.0.0.1.", "[::1]", "[::ffff:7f00:1]", "0:0:0:0:0:0:0:1"],  # noqa: RUF001
)
def test_fault_17_an_address_in_other_characters_is_that_address(host):
    with pytest.raises(EgressRefused):
        EgressPolicy(resolver=lambda name: pytest.fail("resolved")).resolve(host, 22)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("Example.COM", "example.com"),
        ("example.com.", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("faß.example", "xn--fa-hia.example"),
        ("日本。example", "xn--wgv71a.example"),
        ("my_files.example.com", "my_files.example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
    ],
)
def test_names_are_resolved_in_lower_case_ascii(host, name):
    asked = []
    policy = EgressPolicy(resolver=lambda name: asked.append(name) or [PUBLIC])
    policy.resolve(host, 22)
    assert asked == [name]


@given(st.text(max_size=40))
def test_whatever_is_accepted_as_a_host_is_one_exact_name_or_address(text):
    try:
        host = read_host(text)
    except InvalidHost:
        return
    assert read_host(str(host)) == host
    assert str(host).isascii()


@given(st.ip_addresses(v=6))
def test_no_address_that_holds_a_private_one_passes(address):
    is_public = special_reason(address) is None
    assert not (is_public and address.ipv4_mapped)
    assert not (is_public and address.sixtofour)
    assert not (is_public and address.teredo)
    assert not (is_public and (address.is_multicast or address.is_private or address.is_reserved))


@given(st.ip_addresses(v=4))
def test_no_ipv4_address_that_the_standard_library_calls_special_passes(address):
    is_special = address.is_private or address.is_multicast or address.is_reserved or not address.is_global
    assert not is_special or special_reason(address)


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_port_out_of_range_is_refused(port):
    with pytest.raises(InvalidHost, match="port"):
        EgressPolicy().resolve("example.com", port)


@pytest.mark.parametrize(
    ("connect", "options"), [(connect_sftp, {"host_keys": ()}), (connect_ftp, {"allow_plain_ftp": True})]
)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "169.254.169.254", "user@127.0.0.1", "[::1]"])
def test_fault_17_no_protocol_connects_to_a_forbidden_host(connect, options, host):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        with pytest.raises((EgressRefused, InvalidHost)) as refusal:
            connect(host, listener.getsockname()[1], PARTNER, policy=EgressPolicy(), **options)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert isinstance(refusal.value, ConfigError)


def test_fault_17_an_operator_can_allow_a_network_and_nothing_else():
    policy = policy_for("10.1.2.3", allowed=["10.1.0.0/16"])
    assert str(policy.resolve("files.internal", 22)[0]) == "10.1.2.3:22"
    for other in ("10.2.0.1", "192.168.0.1", "::ffff:10.1.2.3", "64:ff9b::a01:203", "2002:a01:203::1"):
        with pytest.raises(EgressRefused):
            policy_for(other, allowed=["10.1.0.0/16"]).resolve("files.internal", 22)


def test_an_allowed_translator_does_not_allow_the_private_addresses_behind_it():
    with pytest.raises(EgressRefused, match="loopback"):
        policy_for("64:ff9b::7f00:1", allowed=["64:ff9b::/96"]).resolve("files.example.com", 22)
    assert policy_for("64:ff9b::5db8:d70e", allowed=["64:ff9b::/96"]).resolve("files.example.com", 22)


def test_a_refusal_names_the_host_the_address_its_kind_and_the_setting():
    with pytest.raises(EgressRefused) as refusal:
        policy_for("169.254.169.254").resolve("files.example.com", 22)
    text = str(refusal.value)
    assert "files.example.com" in text
    assert "169.254.169.254/32" in text
    assert "link-local" in text
    assert "HARVESTER_EGRESS_ALLOW" in text
    assert refusal.value.code == "EGRESS_REFUSED"


@pytest.mark.parametrize(
    "records", [(PUBLIC, "10.0.0.1"), ("10.0.0.1", PUBLIC), (PUBLIC_V6, "::1"), (PUBLIC, PUBLIC_V6, "fe80::1%eth0")]
)
def test_fault_18_one_forbidden_record_among_public_ones_refuses_the_name(records):
    with pytest.raises(EgressRefused):
        policy_for(*records).resolve("files.example.com", 22)


def test_fault_18_the_checked_address_is_connected_without_asking_again(monkeypatch):
    connected = []

    class Recorder(socket.socket):
        def connect(self, address):
            connected.append(address)
            raise ConnectionRefusedError(111, "recorded")

    monkeypatch.setattr(socket, "socket", Recorder)
    asked = []

    def rebinding(name):
        asked.append(name)
        return [PUBLIC] if len(asked) == 1 else ["127.0.0.1"]

    with pytest.raises(ConnectionRefused):
        EgressPolicy(resolver=rebinding).connect("files.example.com", 22, 1)
    assert connected == [(PUBLIC, 22)]
    assert asked == ["files.example.com"]


def test_fault_18_a_name_that_turns_private_is_refused_the_next_time():
    policy = EgressPolicy(resolver=answering([PUBLIC], ["127.0.0.1"]))
    assert policy.resolve("files.example.com", 22)
    with pytest.raises(EgressRefused):
        policy.resolve("files.example.com", 22)


def test_a_name_without_an_address_and_a_failing_name_server_are_tried_again():
    def fail(name):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    for resolver in (fail, lambda name: []):
        with pytest.raises(NameNotResolved) as failure:
            EgressPolicy(resolver=resolver).resolve("files.example.com", 22)
        assert isinstance(failure.value, TransientError)


def test_the_system_resolver_is_used_by_default_and_answers_for_this_machine():
    with pytest.raises(EgressRefused, match="loopback"):
        EgressPolicy().resolve("localhost", 22)


def test_a_silent_name_server_is_given_up_and_does_not_pile_up_threads(monkeypatch):
    monkeypatch.setattr(egress, "_resolving", threading.BoundedSemaphore(2))
    release = threading.Event()
    policy = EgressPolicy(resolver=lambda name: release.wait(30), resolve_seconds=0.01)
    for _ in range(5):
        with pytest.raises(ResolutionTimedOut):
            policy.resolve("files.example.com", 22)
    waiting = [thread for thread in threading.enumerate() if thread.name == "resolve"]
    release.set()
    for thread in waiting:
        thread.join()
    assert len(waiting) == 2


def test_a_connection_goes_to_the_first_address_that_answers():
    with socket.create_server(("127.0.0.2", 0)) as listener:
        policy = policy_for("127.0.0.3", "127.0.0.2", allowed=["127.0.0.0/8"])
        with policy.connect("files.example.com", listener.getsockname()[1], 5) as connection:
            assert connection.getpeername()[0] == "127.0.0.2"
            assert connection.gettimeout() == 5


def test_a_refused_connection_is_tried_again_and_names_host_and_address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefused, match=r"files.example.com \(127.0.0.1:\d+\) refused") as failure:
        policy_for("127.0.0.1", allowed=["127.0.0.0/8"]).connect("files.example.com", port, 5)
    assert isinstance(failure.value, TransientError)


def test_a_silent_host_is_given_up_in_time():
    """A listener whose queue is full answers no more."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        with pytest.raises(ConnectTimedOut):
            policy_for("127.0.0.1", allowed=["127.0.0.0/8"]).connect("x.example.com", listener.getsockname()[1], 0.2)
        for filler in fillers:
            filler.close()


def test_a_host_without_a_way_to_it_is_tried_again(monkeypatch):
    class NoRoute(socket.socket):
        def connect(self, address):
            raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(socket, "socket", NoRoute)
    with pytest.raises(HostUnreachable):
        policy_for(PUBLIC).connect("files.example.com", 22, 1)


def test_networks_are_allowed_by_a_setting():
    config = Config.from_env({"HARVESTER_EGRESS_ALLOW": " 10.1.0.0/16, fd00:1::/32 ,192.0.2.7", "HOME": "/nowhere"})
    assert config.egress_networks == (ip_network("10.1.0.0/16"), ip_network("fd00:1::/32"), ip_network("192.0.2.7/32"))
    assert EgressPolicy.from_config(config).resolve("10.1.2.3", 22)
    with pytest.raises(EgressRefused):
        EgressPolicy.from_config(Config.from_env({"HOME": "/nowhere"})).resolve("10.1.2.3", 22)


@pytest.mark.parametrize("text", ["10.1.2.3/16", "10.0.0.0/33", "private", "0.0.0.0/0", "::/0", "10.0.0.0/8;fd00::/8"])
def test_a_network_that_cannot_be_meant_is_refused_at_start(text):
    with pytest.raises(ConfigError, match="HARVESTER_EGRESS_ALLOW"):
        Config.from_env({"HARVESTER_EGRESS_ALLOW": text, "HOME": "/nowhere"})
