"""Credentials of feeds: what is blank stays, nobody gets to see what is there, and bad ones are refused at once."""

import asyncssh
import pytest
from structlog.testing import capture_logs
from tests.support.feed_rows import ADMIN, make_feed
from tests.support.tables import rows

from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import OWNER_KIND
from harvester.guards import secrets
from harvester.guards.models import SealedSecret
from harvester.kernel.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("database")

_KEY = asyncssh.generate_private_key("ssh-ed25519")
PLAIN = _KEY.export_private_key().decode()
LOCKED = _KEY.export_private_key(passphrase="open sesame", rounds=1, ignore_few_rounds=True).decode()
OLD, NEW = "old-canary-7731", "new-canary-9954"


def change(feed, **given):
    return verbs.change_credentials(ADMIN, feed.id, **given)


def document(feed):
    return secrets.open_document(OWNER_KIND, feed.id)


def again(feed):
    return Feed.objects.get(pk=feed.pk)


def audited():
    return rows("SELECT verb, changed FROM audit_events ORDER BY id")


def test_a_new_password_takes_the_place_of_the_old_one():
    feed = make_feed(password=OLD)
    change(feed, password=f"{NEW}\n")
    assert document(feed) == {"password": NEW}
    assert (again(feed).secret_version, again(feed).secret_fields) == (2, ["password"])


def test_what_is_blank_stays():
    feed = make_feed(password=OLD)
    change(feed, private_key=LOCKED, passphrase="open sesame")
    assert document(feed) == {"password": OLD, "private_key": LOCKED.strip(), "passphrase": "open sesame"}
    change(feed, password=NEW)
    assert document(feed)["password"] == NEW
    assert document(feed)["private_key"] == LOCKED.strip()
    assert again(feed).secret_version == 3


def test_nothing_entered_changes_nothing():
    feed = make_feed(password=OLD)
    change(feed, username=" ", password="")
    assert (again(feed).secret_version, audited()) == (1, [])


def test_a_new_key_comes_with_its_own_passphrase():
    feed = make_feed(password="")
    change(feed, private_key=LOCKED, passphrase="open sesame")
    change(feed, private_key=PLAIN)
    assert document(feed) == {"private_key": PLAIN.strip()}
    assert audited()[-1] == ("CREDENTIAL_CHANGED", ["passphrase", "private_key"])


def test_secrets_that_are_not_entered_again_go_when_all_are_replaced():
    feed = make_feed(password=OLD)
    change(feed, private_key=PLAIN, replace=True)
    assert document(feed) == {"private_key": PLAIN.strip()}
    assert audited() == [("CREDENTIAL_CHANGED", ["password", "private_key"])]


def test_credentials_that_cannot_be_opened_can_be_replaced():
    feed = make_feed(password=OLD)
    SealedSecret.objects.update(payload=b"\1" + bytes(60))
    change(feed, password=NEW, replace=True)
    assert document(feed) == {"password": NEW}


def test_the_user_name_is_a_credential_too():
    feed = make_feed(password=OLD, last_content_hash="ab")
    change(feed, username=" somebody-else ")
    assert (again(feed).username, again(feed).secret_version) == ("somebody-else", 1)
    assert again(feed).last_content_hash is None
    assert audited() == [("CREDENTIAL_CHANGED", ["username"])]


def test_only_names_are_logged():
    feed = make_feed(password=OLD)
    with capture_logs() as logged:
        change(feed, password=NEW, username="acme")
    assert logged[0]["changed_fields"] == ["password", "username"]
    shown = str(logged) + str(rows("SELECT * FROM audit_events")) + str(rows("SELECT * FROM feeds"))
    assert OLD not in shown
    assert NEW not in shown
    assert rows("SELECT count(*) FROM audit_events") == [(1,)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"password": "two\nlines"}, "password: it contains a line break"),
        ({"private_key": "no key"}, "^The private key .*OpenSSH or PEM form.*Enter it again"),
        ({"private_key": LOCKED}, "^The private key .*passphrase is missing or wrong"),
        ({"private_key": LOCKED, "passphrase": "wrong"}, "^The private key .*passphrase is missing or wrong"),
        ({"passphrase": "alone", "replace": True}, "a passphrase is not enough"),
        ({"replace": True}, "a password or a private_key must be entered"),
        ({"username": "two\nlines"}, "username is .*one line"),
        ({"password": "x" * 70_000}, "at most 65536 are allowed"),
    ],
)
def test_bad_credentials_are_refused_and_the_old_ones_stay(given, message):
    feed = make_feed(password=OLD)
    with pytest.raises(InvalidInput, match=message):
        change(feed, **given)
    assert document(feed) == {"password": OLD}
    assert (again(feed).secret_version, audited()) == (1, [])
