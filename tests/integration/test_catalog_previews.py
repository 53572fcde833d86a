"""A preview shows what happens on confirmation."""

import pytest
from tests.support import catalog
from tests.support.catalog import fetch, hours

from harvester.catalog import correction_previews, corrections, display_primary, sources
from harvester.feeds.models import Feed
from harvester.kernel.actor import system
from harvester.kernel.errors import Conflict, InvalidInput, NotFound

pytestmark = pytest.mark.usefixtures("database")
TEST = system("test")


@pytest.fixture
def shop():
    """Two products with an older and a newer price each, of two runs; one of them is scaled already."""
    source = catalog.source(is_display_primary=True)
    runs = [catalog.run(source), catalog.run(source)]
    numbers = [catalog.product(source) for _ in range(2)]
    for place, number in enumerate(numbers):
        for run, ago in zip(runs, (30, 1), strict=True):
            amount = str(10 * (place + 1) + ago)
            catalog.price(source, number, amount, run_no=run.no, observed_at=catalog.now() - hours(ago))
    catalog.recompute_offers(source, numbers)
    corrections.create(
        TEST, scope="PRODUCT", source_id=source.pk, product_id=numbers[0], action="MULTIPLIER", multiplier=2, reason="x"
    )
    return source, runs, numbers


def amounts():
    return dict(fetch("SELECT product_id, trim_scale(amount) FROM offers"))


CORRECTIONS = {
    "ignore a run": lambda source, runs, _: {"scope": "RUN", "source_id": source.pk, "run_no": runs[1].no},
    "ignore a source": lambda source, *_: {"scope": "SOURCE", "source_id": source.pk},
    "ignore an older run": lambda source, runs, _: {"scope": "RUN", "source_id": source.pk, "run_no": runs[0].no},
    "scale a product": lambda source, _, numbers: {
        "scope": "PRODUCT", "source_id": source.pk, "product_id": numbers[0], "multiplier": "0.1",
    },
    "scale to nothing": lambda source, _, numbers: {
        "scope": "PRODUCT", "source_id": source.pk, "product_id": numbers[1], "multiplier": "0.0001",
    },
    "scale a retailer since two hours": lambda source, *_: {
        "scope": "RETAILER", "retailer_id": source.retailer_id, "multiplier": "0.333",
        "observed_from": catalog.now() - hours(2),
    },
    "ignore what is old": lambda source, *_: {
        "scope": "SOURCE", "source_id": source.pk, "observed_to": catalog.now() - hours(2),
    },
}  # fmt: skip


@pytest.mark.parametrize("make", CORRECTIONS.values(), ids=CORRECTIONS)
def test_the_preview_of_a_correction_is_what_it_does(shop, make):
    given = make(*shop)
    given |= {"reason": "wrong", "action": "MULTIPLIER" if "multiplier" in given else "IGNORE"}
    preview, before = correction_previews.preview(**given), amounts()
    assert not fetch("SELECT 1 FROM price_corrections WHERE reason = 'wrong'")
    corrections.create(TEST, **given)
    after = amounts()
    changed = {number: (before[number], after.get(number)) for number in before if before[number] != after.get(number)}
    assert {sample.product_id: (sample.before, sample.after) for sample in preview.samples} == changed
    assert preview.offers == len(changed)


def test_a_preview_refuses_what_the_verb_refuses(shop):
    source = shop[0]
    with pytest.raises(InvalidInput, match="reason"):
        correction_previews.preview(scope="SOURCE", source_id=source.pk, action="IGNORE", reason="")
    with pytest.raises(NotFound, match="no run 99999"):
        correction_previews.preview(scope="RUN", source_id=source.pk, run_no=99999, action="IGNORE", reason="x")


def seen():
    return {row[0] for row in fetch("SELECT p.title FROM visible_offers v JOIN source_products p ON p.id = product_id")}


@pytest.mark.parametrize("start", ["none", "feed", "shop"])
@pytest.mark.parametrize("target", ["feed", "shop"])
def test_the_preview_of_a_primary_is_what_consumers_get(start, target):
    owner = catalog.retailer()
    kinds = {"shop": "DIRECT", "second shop": "DIRECT", "feed": "AFFILIATE_FEED"}
    made = {
        name: catalog.source(owner, kind, expiry_hours=48, is_display_primary=name == start)
        for name, kind in kinds.items()
    }
    for name, source in made.items():
        number = catalog.offer(source)
        fetch("UPDATE source_products SET title = %s WHERE id = %s", name, number)
        catalog.offer(source, seen_until=catalog.now() - hours(99))
    undo = start == target
    preview, before = display_primary.preview(made[target].pk, primary=not undo), seen()
    (display_primary.unset_display_primary if undo else display_primary.set_display_primary)(TEST, made[target].pk)
    assert {title for side in preview.vanishing for title in side.samples} == before - seen()
    assert {title for side in preview.appearing for title in side.samples} == seen() - before
    assert all(side.offers == 1 for side in [*preview.vanishing, *preview.appearing])


@pytest.mark.parametrize("start", ["none", "feed", "shop"])
@pytest.mark.parametrize(("name", "kind"), [("shop", "OTHER"), ("feed", "DIRECT"), ("feed", "OTHER")])
def test_the_preview_of_another_kind_is_what_consumers_get(start, name, kind):
    owner = catalog.retailer()
    kinds = {"shop": "DIRECT", "second shop": "DIRECT", "feed": "AFFILIATE_FEED"}
    made = {
        key: catalog.source(owner, of, expiry_hours=48, is_display_primary=key == start) for key, of in kinds.items()
    }
    for key, source in made.items():
        fetch("UPDATE source_products SET title = %s WHERE id = %s", key, catalog.offer(source))
        catalog.offer(source, seen_until=catalog.now() - hours(99))
    preview, before = display_primary.preview_kind(made[name].pk, kind), seen()
    sources.update(TEST, made[name].pk, kind=kind)
    assert {title for side in preview.vanishing for title in side.samples} == before - seen()
    assert {title for side in preview.appearing for title in side.samples} == seen() - before
    assert bool(preview.state) == (before != seen())


def test_a_source_with_a_feed_cannot_become_direct():
    source = catalog.source(expiry_hours=48)
    catalog.offer(source)
    Feed.objects.create(source=source, network="impact", created_by="test")
    for act in (
        lambda: sources.update(TEST, source.pk, kind="DIRECT"),
        lambda: display_primary.preview_kind(source.pk, "DIRECT"),
    ):
        with pytest.raises(Conflict, match=r"^kind: .* has a feed, so it cannot become DIRECT"):
            act()
    assert seen() == set()
    sources.update(TEST, source.pk, kind="AFFILIATE_FEED", upc_trusted=True)


def test_to_unset_what_is_no_primary_changes_nothing():
    with pytest.raises(Conflict, match="nothing would change"):
        display_primary.preview(catalog.source().pk, primary=False)
