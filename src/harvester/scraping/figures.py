"""The figures of a run over pages, computed from its parts by the database when it ends.

attempts      pages whose outcome counts in a batch; sold out without a price, robots.txt and the network do not
failure rate  pages that the adapter could not read / attempts
yield rate    offers that passed, and pages that had not changed / attempts
drop rate     offers that were left out / offers that were read, those without a price included
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from harvester.runs.gates import share
from harvester.runs.models import Run
from harvester.scraping.states import DROPPED, QUARANTINED, READ, PageOutcome, rule_of

#: Of pages that were fetched and read well, or had not changed.
_SUCCEEDED: Final = (
    *(outcome for outcome in READ if outcome is not PageOutcome.WRONG_PRODUCT),
    *(PageOutcome.NOT_MODIFIED, PageOutcome.OOS_NO_PRICE),
)
_BY_OUTCOME = """
SELECT outcome, count(*), count(found) FROM run_parts WHERE run_id = %(run)s AND begun_at = %(begun)s GROUP BY outcome
"""
_VERSION = """
SELECT version FROM run_parts WHERE run_id = %(run)s AND begun_at = %(begun)s AND version IS NOT NULL
ORDER BY ended_at DESC, id DESC LIMIT 1
"""
_FIELDS = """
SELECT f.name, count(*) FROM run_parts p CROSS JOIN LATERAL jsonb_object_keys(p.found) f (name)
WHERE p.run_id = %(run)s AND p.begun_at = %(begun)s AND jsonb_typeof(p.found) = 'object'
GROUP BY f.name ORDER BY f.name
"""


@dataclass(frozen=True, kw_only=True)
class Outcomes:
    """The parts of a run, counted.

    Attributes:
        pages: outcome -> parts.
        found: outcome -> of these, the parts with an offer.
    """

    pages: Mapping[str, int]
    found: Mapping[str, int]

    def count(self, *outcomes: str) -> int:
        return sum(self.pages.get(outcome, 0) for outcome in outcomes)

    @property
    def attempts(self) -> int:
        return sum(number for outcome, number in self.pages.items() if rule_of(outcome).in_batch)

    @property
    def failures(self) -> int:
        return sum(number for outcome, number in self.pages.items() if rule_of(outcome).is_drift)

    @property
    def quarantined(self) -> int:
        return self.count(*QUARANTINED)

    @property
    def extracted(self) -> int:
        """Offers that were read: those in doubt only if they were read in full."""
        doubtful = (outcome for outcome in QUARANTINED if outcome not in READ)
        return self.count(*READ, *DROPPED) + sum(self.found.get(outcome, 0) for outcome in doubtful)

    def figures(self) -> dict[str, Any]:
        """Return the columns of `scrape_runs` that follow from the outcomes."""
        valid, dropped, unchanged = self.count(PageOutcome.OFFER), self.count(*DROPPED), PageOutcome.NOT_MODIFIED
        rates = {"failure_rate": self.failures, "yield_rate": valid + self.count(unchanged)}
        return {
            "pages": sum(self.pages.values()),
            "urls_succeeded": self.count(*_SUCCEEDED),
            "urls_failed": self.failures,
            "offers": self.extracted,
            "offers_valid": valid,
            "offers_dropped": dropped,
            "quarantined": self.quarantined,
            "zero_prices": self.count(PageOutcome.ZERO_PRICE_EXTRACTED),
            "oos_no_price": self.count(PageOutcome.OOS_NO_PRICE),
            "not_modified": self.count(unchanged),
            **{name: round(share(part, self.attempts), 4) for name, part in rates.items()},
            "drop_rate": round(share(dropped, self.extracted), 4),
        }


def outcomes_of(run: Run) -> Outcomes:
    """Count the parts of a run by outcome."""
    rows = _rows(_BY_OUTCOME, run)
    return Outcomes(
        pages={outcome: number for outcome, number, _ in rows}, found={outcome: found for outcome, _, found in rows}
    )


def fields_found(run: Run) -> dict[str, int]:
    """Return field -> on how many pages of a run it was found."""
    return dict(_rows(_FIELDS, run))


def version_of(run: Run) -> str | None:
    """Return the version of the adapter that read the newest page of a run."""
    found = _rows(_VERSION, run)
    return found[0][0] if found else None


def _rows(query: str, run: Run) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"run": run.pk, "begun": run.started_at})
        return cursor.fetchall()
