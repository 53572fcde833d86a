"""Sealed payloads open only for their key and their owner, and no failure reveals a secret."""

import base64
import copy
import multiprocessing
import os
import pickle
import re
import stat
import traceback
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from harvester.guards.vault import (
    InvalidKey,
    InvalidKeyFile,
    KeyRing,
    PayloadTooShort,
    Sealed,
    UnknownKey,
    UnknownPayloadVersion,
    VaultError,
    WrongKeyOrContext,
    aad_for,
    generate_key,
    key_ring,
    load_or_create_key_file,
)
from harvester.kernel.config import KEY_VARIABLE, Config
from harvester.kernel.errors import ConfigError, InvalidInput, TerminalError

FEED = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
AAD = aad_for("feed", FEED, 1)
KEY = bytes(range(32))
KEY_B64 = base64.b64encode(KEY).decode()
OTHER_KEY_B64 = base64.b64encode(bytes(range(32, 64))).decode()

keys = st.binary(min_size=32, max_size=32)
texts = st.text(st.characters(codec="utf-8"), max_size=100)
plaintexts = st.one_of(st.binary(max_size=200), texts)
#: Begin with bytes that no message has, so that finding one there is never chance.
recognizable = st.binary(max_size=200).map(b"\x9c\x9d".__add__)


def ring_of(*keys):
    return KeyRing({f"k{number}": key for number, key in enumerate(keys)})


def names_in(directory):
    return sorted(path.name for path in directory.iterdir())


def everything_said_by(error):
    return "\n".join([str(error), repr(error), "".join(traceback.format_exception(error))])


def assert_contains_none_of(text, *secrets):
    for secret in secrets:
        for form in (secret.hex(), repr(secret)[2:-1], base64.b64encode(secret).decode()):
            assert form not in text


@given(keys, plaintexts, texts)
def test_what_was_sealed_opens_to_the_same_bytes(key, plaintext, aad):
    ring = ring_of(key)
    expected = plaintext.encode() if isinstance(plaintext, str) else plaintext
    assert ring.open(ring.seal(plaintext, aad), aad) == expected


def test_two_sealings_of_one_secret_share_no_iv():
    ring = ring_of(KEY)
    ivs = {ring.seal("same", AAD).payload[1:13] for _ in range(1000)}
    assert len(ivs) == 1000


def test_payload_has_the_documented_layout():
    """Opened by hand with the low-level cipher: version 1, 12 bytes IV, 16 bytes tag, ciphertext."""
    payload = ring_of(KEY).seal("hunter2 is not a password", AAD).payload
    version, iv, tag, ciphertext = payload[0], payload[1:13], payload[13:29], payload[29:]
    decryptor = Cipher(algorithms.AES(KEY), modes.GCM(iv, tag)).decryptor()
    decryptor.authenticate_additional_data(b"feed:01890a5d-ac96-774b-bcce-b302099a8057:v1")
    assert version == 1
    assert decryptor.update(ciphertext) + decryptor.finalize() == b"hunter2 is not a password"


def test_a_payload_built_elsewhere_in_the_layout_opens():
    iv = b"twelve bytes"
    encryptor = Cipher(algorithms.AES(KEY), modes.GCM(iv)).encryptor()
    encryptor.authenticate_additional_data(b"feed:01890a5d-ac96-774b-bcce-b302099a8057:v7")
    ciphertext = encryptor.update(b"s3cret") + encryptor.finalize()
    payload = b"\x01" + iv + encryptor.tag + ciphertext
    ring = KeyRing.parse(KEY_B64)
    assert ring.open(Sealed("default", payload), aad_for("feed", FEED, 7)) == b"s3cret"


def test_a_known_payload_of_the_layout_opens():
    """Fixed bytes, so that a change of layout, cipher or AAD shows even if both directions change alike."""
    payload = bytes.fromhex("017477656c766520627974657352586571b0d2bf4fa399ecfebb490aacd9b6808c012e")
    assert KeyRing.parse(KEY_B64).open(Sealed("default", payload), aad_for("feed", FEED, 7)) == b"s3cret"


@given(keys, recognizable, st.data())
def test_any_changed_byte_is_refused(key, plaintext, data):
    ring = ring_of(key)
    sealed = ring.seal(plaintext, AAD)
    position = data.draw(st.integers(0, len(sealed.payload) - 1))
    change = data.draw(st.integers(1, 255))
    altered = bytearray(sealed.payload)
    altered[position] ^= change
    with pytest.raises(VaultError) as caught:
        ring.open(Sealed(sealed.key_id, bytes(altered)), AAD)
    assert type(caught.value) is (UnknownPayloadVersion if position == 0 else WrongKeyOrContext)
    assert_contains_none_of(everything_said_by(caught.value), key, plaintext, sealed.payload[1:13], bytes(altered))


@given(keys, recognizable, st.data())
def test_any_truncated_payload_is_refused(key, plaintext, data):
    ring = ring_of(key)
    sealed = ring.seal(plaintext, AAD)
    length = data.draw(st.integers(0, len(sealed.payload) - 1))
    with pytest.raises(VaultError) as caught:
        ring.open(Sealed(sealed.key_id, sealed.payload[:length]), AAD)
    assert type(caught.value) is (PayloadTooShort if length < 29 else WrongKeyOrContext)
    assert_contains_none_of(everything_said_by(caught.value), key, plaintext)


@given(keys, recognizable, st.binary(max_size=300))
def test_random_bytes_are_refused(key, plaintext, noise):
    with pytest.raises(VaultError) as caught:
        ring_of(key).open(Sealed("k0", noise), AAD)
    assert isinstance(caught.value, TerminalError)


@pytest.mark.parametrize(
    "other",
    [
        aad_for("feed", UUID(int=FEED.int + 1), 1),
        aad_for("feed", FEED, 2),
        aad_for("connection", FEED, 1),
        AAD + " ",
        "",
    ],
)
def test_a_payload_moved_to_another_owner_is_refused(other):
    ring = ring_of(KEY)
    with pytest.raises(WrongKeyOrContext, match="moved from another owner, or altered"):
        ring.open(ring.seal("hunter2", AAD), other)


@given(keys, keys, recognizable)
def test_another_key_of_the_same_id_is_refused(key, other, plaintext):
    if key == other:
        return
    with pytest.raises(WrongKeyOrContext) as caught:
        ring_of(other).open(ring_of(key).seal(plaintext, AAD), AAD)
    assert_contains_none_of(everything_said_by(caught.value), key, other, plaintext)


def test_an_unknown_key_id_is_a_matter_of_configuration():
    sealed = KeyRing.parse(f"old:{KEY_B64}").seal("hunter2", AAD)
    with pytest.raises(UnknownKey, match=r"'old'.*ring has only new") as caught:
        KeyRing.parse(f"new:{KEY_B64}").open(sealed, AAD)
    assert isinstance(caught.value, ConfigError)


def test_the_first_key_writes_and_all_read():
    before = KeyRing.parse(f"2025:{KEY_B64}")
    after = KeyRing.parse(f"2026:{OTHER_KEY_B64}, 2025:{KEY_B64}")
    assert after.seal("x", AAD).key_id == after.writing_id == "2026"
    assert after.key_ids == ("2026", "2025")
    assert after.open(before.seal("kept", AAD), AAD) == b"kept"


def test_a_key_without_an_id_is_called_default():
    sealed = KeyRing.parse(KEY_B64).seal("kept", AAD)
    ring = KeyRing.parse(f"new:{OTHER_KEY_B64},default:{KEY_B64}")
    assert ring.open(sealed, AAD) == b"kept"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "its entry 1 does not"),
        (base64.b64encode(bytes(31)).decode(), "its entry 1 does not"),
        (base64.b64encode(bytes(33)).decode(), "its entry 1 does not"),
        (KEY_B64.rstrip("="), "its entry 1 does not"),
        (KEY_B64 + "=", "its entry 1 does not"),
        (KEY_B64[:20] + "\n" + KEY_B64[20:], "its entry 1 does not"),
        (KEY_B64[:-2] + "9=", "its entry 1 does not"),
        (base64.urlsafe_b64encode(b"\xff" * 32).decode(), "its entry 1 does not"),
        (KEY.hex(), "its entry 1 does not"),
        ("pässwörd", "its entry 1 does not"),
        (f"a:{KEY_B64},b:{KEY_B64[:-4]}", "its entry 2 does not"),
        (f"a:{KEY_B64},a:{OTHER_KEY_B64}", "'a' twice"),
        (f"{KEY_B64},b:{OTHER_KEY_B64}", "not all have an id"),
        (f"a:{KEY_B64},{OTHER_KEY_B64}", "not all have an id"),
        (f"a:{KEY_B64},", "not all have an id"),
        (f":{KEY_B64}", "entry 1: an id"),
        (f"a b:{KEY_B64}", "entry 1: an id"),
        (f"{'a' * 33}:{KEY_B64}", "entry 1: an id"),
        (f"a:b:{KEY_B64}", "entry 1: an id"),
    ],
)
def test_malformed_keys_are_refused_in_one_line_without_their_value(text, says):
    with pytest.raises(InvalidKey, match=re.escape(says)) as caught:
        KeyRing.parse(text)
    message = str(caught.value)
    assert isinstance(caught.value, ConfigError)
    assert message.startswith(KEY_VARIABLE)
    assert "\n" not in message
    assert_says_nothing_of(text, everything_said_by(caught.value))


def assert_says_nothing_of(text, said):
    for part in re.split(r"[,:\n]", text):
        assert len(part) < 8 or part not in said


def test_the_last_character_of_a_key_counts_in_full():
    """Base64 decoders ignore two of its bits, so that a mistyped key would pass for the right one."""
    mistyped = KEY_B64[:-2] + "9="
    assert base64.b64decode(mistyped, validate=True) == KEY
    with pytest.raises(InvalidKey):
        KeyRing.parse(mistyped)


def test_a_lone_surrogate_is_refused_without_being_shown():
    secret = "hunter2" + chr(0xDC80)
    with pytest.raises(InvalidInput) as caught:
        ring_of(KEY).seal(secret, AAD)
    assert "hunter2" not in everything_said_by(caught.value)
    assert caught.value.__context__ is None


def test_no_repr_shows_bytes():
    ring = KeyRing.parse(f"2026:{KEY_B64}")
    sealed = ring.seal("hunter2", AAD)
    assert repr(ring) == str(ring) == "KeyRing(writes='2026', reads=('2026',))"
    assert repr(sealed) == str(sealed) == "Sealed(key_id='2026', 36 bytes)"


@pytest.mark.parametrize("leave_the_process", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_ring_does_not_travel(leave_the_process):
    with pytest.raises(TypeError, match="must not leave its process"):
        leave_the_process(ring_of(KEY))


owners = st.tuples(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True), st.text(":v1a", max_size=8), st.integers(1, 99)
)


@given(owners, owners)
def test_two_owners_never_share_a_name(one, other):
    assert (aad_for(*one) == aad_for(*other)) is (one == other)


@pytest.mark.parametrize(("kind", "version"), [("", 1), ("fe:ed", 1), ("Feed", 1), ("feed", 0), ("feed", -1)])
def test_a_malformed_owner_is_refused(kind, version):
    with pytest.raises(ValueError, match=r"kind of an owner|must be at least 1"):
        aad_for(kind, FEED, version)


def test_derived_keys_differ_by_key_and_purpose_and_stay_the_same():
    ring = KeyRing.parse(f"2026:{OTHER_KEY_B64},2025:{KEY_B64}")
    newest, older = ring.derived_keys("django")
    assert older == KeyRing.parse(KEY_B64).derived_keys("django")[0]
    assert newest == ring.derive(b"django").hex()
    assert len({newest, older, *ring.derived_keys("metrics")}) == 4
    assert {len(key) for key in ring.derived_keys("django")} == {64}


def test_the_derivation_is_fixed():
    """Sessions survive an upgrade only if this stays."""
    derived = KeyRing.parse(KEY_B64).derive(b"django")
    assert derived.hex() == "87e9d5f05d818feee017a784369a66ed2bf49ea308db10bb958a604b3b591459"


def test_a_generated_key_is_accepted_and_new_each_time():
    assert len({generate_key() for _ in range(100)}) == 100
    KeyRing.parse(generate_key())


def test_the_key_file_is_made_once_with_mode_0600(tmp_path):
    path = tmp_path / "home" / "credential.key"
    previous = os.umask(0)
    try:
        first = load_or_create_key_file(path)
    finally:
        os.umask(previous)
    again = load_or_create_key_file(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert again.open(first.seal("kept", AAD), AAD) == b"kept"
    assert names_in(path.parent) == ["credential.key"]


def _derive_from(path, barrier, results):
    barrier.wait()
    results.put(load_or_create_key_file(path).derived_keys("race"))


def test_processes_that_start_together_share_one_key(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    barrier, results = spawn.Barrier(4), spawn.Queue()
    path = tmp_path / "credential.key"
    racers = [spawn.Process(target=_derive_from, args=(path, barrier, results)) for _ in range(4)]
    for racer in racers:
        racer.start()
    found = {tuple(results.get(timeout=60)) for _ in racers}
    for racer in racers:
        racer.join()
    assert len(found) == 1
    assert names_in(tmp_path) == ["credential.key"]


def test_the_loser_of_the_race_reads_the_winners_key(tmp_path, monkeypatch):
    """The other process links its file between this one's look and its own link."""
    path = tmp_path / "credential.key"
    path_of_winner = tmp_path / "winner"
    link = os.link

    def winner_was_faster(source, target):
        path_of_winner.write_text(KEY_B64)
        path_of_winner.chmod(0o600)
        link(path_of_winner, path)
        link(source, target)

    monkeypatch.setattr(os, "link", winner_was_faster)
    ring = load_or_create_key_file(path)
    assert ring.derived_keys("x") == KeyRing.parse(KEY_B64).derived_keys("x")
    assert names_in(tmp_path) == ["credential.key", "winner"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o610])
def test_a_key_file_open_to_others_is_refused(tmp_path, mode):
    path = tmp_path / "credential.key"
    path.write_text(KEY_B64)
    path.chmod(mode)
    with pytest.raises(InvalidKeyFile, match=re.escape(f"chmod 600 {path}")):
        load_or_create_key_file(path)


@pytest.mark.parametrize(
    "content", [b"", b"\n", KEY_B64[:-1].encode(), b"\xff\xfe", KEY_B64.encode() + b"\n" + KEY_B64.encode()]
)
def test_a_malformed_key_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "credential.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidKeyFile, match=re.escape(str(path))) as caught:
        load_or_create_key_file(path)
    assert path.read_bytes() == content
    assert "\n" not in str(caught.value)
    assert KEY_B64[:8] not in str(caught.value)


def test_a_key_file_may_hold_several_keys(tmp_path):
    path = tmp_path / "credential.key"
    path.write_text(f"new:{OTHER_KEY_B64},default:{KEY_B64}\n")
    path.chmod(0o600)
    assert load_or_create_key_file(path).key_ids == ("new", "default")


def _make_directory(path):
    path.mkdir(mode=0o700)


def _make_pipe(path):
    os.mkfifo(path, 0o600)


def _make_large(path):
    path.write_bytes(b"A" * (64 * 1024 + 1))
    path.chmod(0o600)


def _make_dangling(path):
    path.symlink_to(path.parent / "gone")


@pytest.mark.parametrize("make", [_make_directory, _make_pipe, _make_large, _make_dangling])
def test_something_else_in_place_of_the_key_file_is_refused(tmp_path, make):
    path = tmp_path / "credential.key"
    make(path)
    with pytest.raises(InvalidKeyFile, match=re.escape(str(path))):
        load_or_create_key_file(path)
    assert names_in(tmp_path) == ["credential.key"]


def test_a_home_that_is_no_directory_is_said_in_one_line(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(InvalidKeyFile, match="cannot be read or created: Not a directory"):
        load_or_create_key_file(tmp_path / "home" / "credential.key")


def test_a_file_system_without_links_is_said_in_one_line(tmp_path, monkeypatch):
    def no_links(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(InvalidKeyFile, match=f"no hard links.*{KEY_VARIABLE}"):
        load_or_create_key_file(tmp_path / "credential.key")
    assert names_in(tmp_path) == []


def test_the_setting_wins_over_the_key_file(tmp_path):
    ring = key_ring(Config(home=tmp_path, encryption_keys=f"env:{KEY_B64}"))
    assert ring.key_ids == ("env",)
    assert names_in(tmp_path) == []


def test_the_embedded_default_makes_a_key_file(tmp_path):
    key_ring(Config(home=tmp_path))
    assert names_in(tmp_path) == ["credential.key"]


def test_an_external_database_without_a_key_makes_no_file(tmp_path):
    with pytest.raises(ConfigError, match=KEY_VARIABLE):
        key_ring(Config(home=tmp_path, database_url="postgresql://u:p@db/harvester"))
    assert names_in(tmp_path) == []
