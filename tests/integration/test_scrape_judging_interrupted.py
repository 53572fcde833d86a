"""A crash at any statement between the end of a page and the facts changes nothing, and the next attempt ends the same.

And the size of a shop does not matter: nothing that ends or judges a page reads more than its batch.
"""

import json
import re

import pytest
from django.db import OperationalError, connection, connections, transaction
from tests.support import catalog
from tests.support.page_runs import begin, end, offer, prices, read_all, shop
from tests.support.tables import rows

from harvester.runs.kinds import PartEnd
from harvester.runs.models import Run, RunPart
from harvester.runs.parts import end_part
from harvester.scraping.runs import SCRAPE_RUNS

pytestmark = pytest.mark.usefixtures("database")
TABLES = (
    *("run_parts", "runs", "scrape_runs", "scrape_targets", "adapter_states", "scrape_batches", "scrape_totals"),
    *(
        "quarantine",
        "prices",
        "offers",
        "source_products",
        "page_products",
        "alerts",
        "audit_events",
        "source_breakers",
    ),
)
#: Statements that open or end a savepoint, or only name the session.
_NOT_COUNTED = re.compile(r"\s*(SAVEPOINT|RELEASE|ROLLBACK|SET )")


class CrashAt:
    """Fails instead of one statement, counted from 0."""

    def __init__(self, place: int, error: Exception) -> None:
        self.left, self.error, self.has_failed = place, error, False

    def __call__(self, execute, sql, params, many, context):
        if not self.has_failed and not _NOT_COUNTED.match(sql):
            if self.left == 0:
                self.has_failed = True
                raise self.error
            self.left -= 1
        return execute(sql, params, many, context)


def snapshot() -> list:
    """A hash of each table."""
    of = "SELECT '{0}', md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {0} t"
    return rows(" UNION ALL ".join(of.format(table) for table in TABLES))


def facts(source) -> dict[str, list]:
    """What is the same in two shops that saw the same pages, apart from times and ids."""
    of = {
        "parts": "SELECT outcome, count(*) FROM run_parts WHERE run_id IN (SELECT id FROM runs WHERE source_id = %s) "
        "GROUP BY 1",
        "targets": "SELECT url, last_status, consecutive_failures, status, waiting IS NULL, recheck_reason, "
        "pinned::text, last_seen -> 'offer' FROM scrape_targets WHERE source_id = %s",
        "state": "SELECT uncounted, failed_batches, empty_batches, jsonb_array_length(recent) FROM adapter_states "
        "WHERE source_id = %s",
        "batches": "SELECT attempts, new_attempts, failures, offers, is_refused FROM scrape_batches "
        "WHERE source_id = %s",
        "totals": "SELECT figure, word, total FROM scrape_totals WHERE source_id = %s",
        "quarantine": "SELECT reason, status, count(*) FROM quarantine WHERE source_id = %s GROUP BY 1, 2",
        "prices": "SELECT amount, in_stock FROM prices WHERE source_id = %s",
        "offers": "SELECT amount, in_stock FROM offers WHERE source_id = %s",
        "runs": "SELECT status, outcome FROM runs WHERE source_id = %s",
        "figures": "SELECT pages, offers, prices_written, products_new, failure_rate FROM scrape_runs "
        "WHERE source_id = %s",
    }
    return {name: sorted(map(str, rows(query, source.pk))) for name, query in of.items()}


def pages(case: str) -> list:
    """How twenty pages end; the last one makes the batch whole and ends the run."""
    good = [offer(f"{10 + n}.00", sku=f"S-{n}") for n in range(20)]
    match case:
        case "promoted":
            return [*good[:17], "GONE", "OOS_NO_PRICE", "ZERO_PRICE_EXTRACTED", "NOT_MODIFIED", good[17]]
        case "refused":
            return [*good[:9], *["TITLE_NOT_FOUND"] * 11]
        case _:
            return [offer(f"{50 + 3 * n}.00", sku=f"S-{n}") for n in range(20)]


CASES = ("promoted", "refused", "moved")
#: One statement in so many fails in the longer test; which ones differs between its cases.
STRIDE = 2


def prepared(case: str):
    """A shop whose last page is about to end, and that page."""
    ends = pages(case)
    source = shop(len(ends))
    if case == "moved":
        read_all(source, [offer(f"{10 + n}.00", sku=f"S-{n}") for n in range(20)])
    *before, last = begin(source)
    for part, one in zip(before, ends, strict=False):
        finish(part, one)
    return source, last, ends[-1]


def finish(part, one) -> None:
    end(part, one) if isinstance(one, str) else end(part, "OFFER", one)


def finish_interrupted(part, one, crash) -> None:
    """End a part while a crash is waiting, up to the commit."""
    found = {} if isinstance(one, str) else {"found": one}
    ended = PartEnd(
        outcome=one if isinstance(one, str) else "OFFER", observed_at=catalog.now(), version="1.0.0", **found
    )
    part = RunPart.objects.select_related("run").get(pk=part.pk)
    with connection.execute_wrapper(crash), transaction.atomic():
        end_part(SCRAPE_RUNS, part, ended)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_lost_session_at_any_statement_leaves_the_tables_as_they_were(case):
    undisturbed, last, one = prepared(case)
    finish(last, one)
    source, last, one = prepared(case)
    before = snapshot()
    for place in range(1000):
        crash = CrashAt(place, OperationalError("the connection is gone"))
        try:
            finish_interrupted(last, one, crash)
        except OperationalError:
            assert crash.has_failed
        if not crash.has_failed:
            break
        assert snapshot() == before, f"statement {place}"
    assert place > 20, "there were statements to lose"
    assert facts(source) == facts(undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_error_at_any_statement_writes_all_of_a_batch_or_none_of_it(case):
    source, last, one = prepared(case)
    written_before, seen = len(prices(source)), set()
    for place in range(CASES.index(case), 1000, STRIDE):
        crash = CrashAt(place, RuntimeError("broken on purpose"))
        with transaction.atomic():
            try:
                finish_interrupted(last, one, crash)
                check_consistent(source, written_before, case)
                seen.add((RunPart.objects.get(pk=last.pk).outcome, Run.objects.latest("no").status))
            except RuntimeError:
                assert crash.has_failed, "before anything could be caught, so the job is tried again"
            transaction.set_rollback(True)
        if not crash.has_failed:
            break
    assert place > 20
    assert {"SUCCEEDED", "FAILED"} <= {status for _, status in seen}
    assert "FAILED" in {outcome for outcome, _ in seen}


def check_consistent(source, written_before: int, case: str) -> None:
    """No half batch: the offers of it were written or none, and those that were refused are in quarantine."""
    [(promoted,)] = rows("SELECT count(*) FROM run_parts WHERE outcome = 'OFFER' AND judged_at IS NOT NULL")
    [(kept,)] = rows("SELECT count(*) FROM run_parts WHERE outcome IN ('DRIFT_DETECTED', 'BULK_MOVE')")
    [(waiting,)] = rows("SELECT count(*) FROM quarantine WHERE reason IN ('DRIFT_DETECTED', 'BULK_MOVE')")
    assert (promoted, kept) == (len(prices(source)), waiting)
    # Without its last page, whose end failed, a batch has 19: too few to say that the adapter has drifted.
    assert promoted - written_before in {"promoted": {0, 17, 18}, "refused": {0, 9}, "moved": {0}}[case]


# -- size ----------------------------------------------------------------------------------------------------------

MANY = 20_000
_FILL = """
INSERT INTO source_products (source_id, id, identity_type, identity_value, content_hash, title, url, created_run_no,
    updated_run_no)
SELECT %(source)s, i, 3, 'X-' || i, 1, 'Thing ' || i, 'https://shop.example/x' || i, 1, 1
FROM generate_series(1, %(many)s) i;
INSERT INTO prices (source_id, source_product_id, observed_at, run_no, signature, run_type, amount, currency, in_stock,
    created_at)
SELECT %(source)s, i, now() - interval '2 days', 1, md5(i::text)::uuid, 'SCRAPE', 10, 'USD', true, now()
FROM generate_series(1, %(many)s) i;
INSERT INTO scrape_targets (id, source_id, url, canonical_url, adapter_id, created_by, last_status)
SELECT gen_random_uuid(), %(source)s, u, u, 'structured', 'test', 'OFFER'
FROM (SELECT 'https://shop.example/x' || i AS u FROM generate_series(1, %(many)s) i) pages;
INSERT INTO quarantine (id, source_id, target_id, run_no, part_id, reason, detail, adapter_id, version, observed_at,
    status, resolved_at)
SELECT gen_random_uuid(), %(source)s, t.id, 1, gen_random_uuid(), 'AMBIGUOUS_PRICE', '', 'structured', '1', now(),
    'DISMISSED', now() FROM scrape_targets t WHERE t.source_id = %(source)s;
INSERT INTO runs (id, kind, subject_id, source_id, trigger, status, outcome, finished_at)
SELECT gen_random_uuid(), 'SCRAPE', %(source)s, %(source)s, 'SCHEDULED', 'SUCCEEDED', 'PROMOTED', now()
FROM generate_series(1, %(many)s) i;
INSERT INTO run_parts (id, begun_at, run_id, target_id, outcome, ended_at, judged_at)
SELECT gen_random_uuid(), r.started_at, r.id, gen_random_uuid(), 'OFFER', now(), now() FROM runs r
WHERE r.subject_id = %(source)s;
"""


class Explained:
    """Explains each statement before it runs; `read` has table -> most rows that a scan of it read."""

    def __init__(self) -> None:
        self.read: dict[str, tuple[float, str]] = {}
        self.is_busy = False

    def __call__(self, execute, sql, params, many, context):
        if not self.is_busy and re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)", sql):
            self.is_busy = True
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(f"EXPLAIN (ANALYZE, FORMAT json) {sql}", params)
                    [(found,)] = cursor.fetchall()
                    transaction.set_rollback(True)
            finally:
                self.is_busy = False
            plan = json.loads(found) if isinstance(found, str) else found
            self._note([plan[0]["Plan"]], sql)
        return execute(sql, params, many, context)

    def _note(self, nodes, sql) -> None:
        for node in nodes:
            if (table := node.get("Relation Name")) and node["Node Type"] != "ModifyTable":
                number = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
                self.read[table] = max(self.read.get(table, (0, "")), (number, sql))
            self._note(node.get("Plans", []), sql)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["promoted", "refused"])
def test_the_end_of_a_batch_reads_nothing_of_the_rest_of_a_large_shop(case):
    source, last, one = prepared(case)
    for statement in _FILL.strip().split(";\n"):
        with connection.cursor() as cursor:
            cursor.execute(statement.rstrip(";"), {"source": source.pk, "many": MANY})
    with connections["owner"].cursor() as owner:
        owner.execute("ANALYZE source_products, prices, offers, scrape_targets, quarantine, runs, run_parts")
    explained = Explained()
    with connection.execute_wrapper(explained):
        finish(last, one)
    assert {"scrape_targets", "runs"} <= explained.read.keys(), "plans were looked at"
    assert {table: found for table, found in explained.read.items() if found[0] > 250} == {}
    assert catalog.fetch("SELECT count(*) FROM scrape_targets")[0][0] > MANY
