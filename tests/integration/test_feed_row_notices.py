"""What a run gives notice of about the rows of its file: stock texts, links, prices, identifiers."""

import pytest
from tests.support.feed_world import OLGA
from tests.support.feeds import row
from tests.support.portal import person

from harvester.feeds import verbs
from harvester.feeds.notices import NoticeCode
from harvester.ops.models import Alert, Role

pytestmark = pytest.mark.usefixtures("database")


def noticed(world, run, code):
    """The notice of a run, if it has one of this code."""
    return next((one for one in world.figures(run).notices if one["code"] == code), None)


def test_many_unknown_stock_texts_are_listed_on_the_run_and_the_dashboard_until_a_run_is_free_of_them(world, client):
    unknown = [row(number, Availability="ask us") for number in (191, 192)]
    world.put(*range(100, 138), *unknown, row(193, Availability=""))
    assert noticed(world, world.run(), NoticeCode.UNKNOWN_STOCK_TEXTS) is None, "2 of 40 are just 5 %"
    world.put(*range(100, 138), *unknown, row(193, Availability="<b>soon</b>"))
    run = world.run()
    assert noticed(world, run, NoticeCode.UNKNOWN_STOCK_TEXTS) == {
        "code": "UNKNOWN_STOCK_TEXTS",
        "message": "3 of 41 stock texts (7.3%) are not understood.",
        "count": 3,
        "examples": ["'ask us': 2", "'<b>soon</b>': 1"],
    }
    client.force_login(person("vera", Role.VIEWER))
    assert "3 of 41 stock texts" in client.get(f"/runs/{run.no}/").content.decode()
    assert "stock texts that are not understood" in client.get("/").content.decode()
    world.put(*range(100, 140))
    world.run()
    assert not Alert.objects.filter(kind="UNKNOWN_STOCK_TEXTS", resolved_at=None).exists()


def test_a_feed_may_reject_rows_whose_stock_is_not_understood(world):
    world.change(unknown_stock="REJECT")
    world.put(*range(100, 110), row(111, Availability="ask us"), row(112, Availability="0"))
    run = world.run()
    assert (run.outcome, world.figures(run).rejects) == ("PROMOTED", {"UNREADABLE_STOCK": 1})
    assert world.shown()["S-112"][2] is False
    assert "S-111" not in world.shown()
    assert noticed(world, run, NoticeCode.UNKNOWN_STOCK_TEXTS)["count"] == 1


def test_different_links_that_come_to_one_product_are_noticed_unless_the_feed_keeps_their_parameter(world):
    world.change(accepts_url_identity=True)
    links = [row(number, SKU="", Url=f"https://shop.example/p?ref={number}") for number in (101, 102)]
    world.put(*links, 110)
    first = world.run()
    assert noticed(world, first, NoticeCode.LINKS_COLLAPSED) == {
        "code": "LINKS_COLLAPSED",
        "message": "1 product has several links that differ in parameters that do not count; the last row of each is "
        "used.",
        "count": 1,
        "examples": ["shop.example/p?ref=101 and shop.example/p?ref=102"],
    }
    assert len(world.shown()) == 2
    verbs.update(OLGA, world.feed.id, {"kept_parameters": "ref"})
    second = world.run()
    assert noticed(world, second, NoticeCode.LINKS_COLLAPSED) is None, "the same file was read again"
    assert sorted(amount for _, amount, _ in world.shown().values()) == [1.01, 1.02, 1.02, 1.1]
