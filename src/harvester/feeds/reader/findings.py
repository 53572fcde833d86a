"""Rejected rows and warnings: exact counts, and the first rows of each kind as samples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harvester.guards.redaction import redact_text
from harvester.kernel.network import Field
from harvester.kernel.rejects import Fault, RejectCode, WarningCode
from harvester.kernel.urls import LONGEST_URL

MOST_SAMPLES = 50
#: Enough to recognize a row, and short enough for a page of fifty.
SAMPLE_CHARACTERS = 300
#: A secret is recognized by what follows it, such as the rest of an address with a password. That may stand beyond the
#: characters that are shown.
REDACTED_CHARACTERS = SAMPLE_CHARACTERS + LONGEST_URL
#: Different unknown stock texts that are kept. There are few words for stock; more of them belong to another column.
MOST_STOCK_TEXTS = 1_000

Code: TypeAlias = RejectCode | WarningCode


@dataclass(frozen=True, kw_only=True, order=True)
class Sample:
    """A row to look at.

    Attributes:
        line: where it begins in the file; the header is line 1.
        row: its beginning as written in the file, without secrets.
        reason: what is wrong with it, in one sentence.
    """

    line: int
    row: str
    reason: str = ""


@dataclass(kw_only=True)
class Findings:
    """What was found in one part of a file, or in all of it.

    Attributes:
        counts: how often each code occurs.
        samples: the first rows of each code.
        stock_cells: non-empty cells of the stock column, of rows that are valid except for their stock.
        unknown_stock_cells: those of them that cannot be read.
        unknown_stock: the most frequent unknown texts, and how often each occurs; if there are many, some are left out.
        spared: valid rows whose identifier is missing in its column and present in another one.
    """

    counts: Counter[Code] = field(default_factory=Counter)
    samples: dict[Code, list[Sample]] = field(default_factory=dict)
    stock_cells: int = 0
    unknown_stock_cells: int = 0
    unknown_stock: Counter[str] = field(default_factory=Counter)
    spared: Counter[Field] = field(default_factory=Counter)

    def add_reject(self, fault: Fault, line: int, row: bytes) -> None:
        self.counts[fault.code] += 1
        self.add_sample(fault.code, line, row, fault.sentence)

    def add_sample(self, code: Code, line: int, row: bytes, reason: str = "") -> None:
        """Keep a row as a sample, if there are not enough of its code. Invalid UTF-8 becomes replacement characters."""
        kept = self.samples.setdefault(code, [])
        if len(kept) < MOST_SAMPLES:
            # No character has more than four bytes.
            text = row[: REDACTED_CHARACTERS * 4].decode(errors="replace").rstrip("\r\n")[:REDACTED_CHARACTERS]
            kept.append(Sample(line=line, row=storable(text), reason=reason))

    def add(self, others: Sequence["Findings"]) -> None:
        """Add the findings of parts that come later in the file, in any order among themselves."""
        for other in others:
            self.counts.update(other.counts)
            self.stock_cells += other.stock_cells
            self.unknown_stock_cells += other.unknown_stock_cells
            self.unknown_stock.update(other.unknown_stock)
            self.spared.update(other.spared)
        if len(self.unknown_stock) > MOST_STOCK_TEXTS:
            self.unknown_stock = Counter(dict(self.unknown_stock.most_common(MOST_STOCK_TEXTS)))
        for code in {code for other in others for code in other.samples}:
            kept = self.samples.setdefault(code, [])
            later = sorted(sample for other in others for sample in other.samples.get(code, ()))
            kept.extend(
                Sample(line=sample.line, row=redact_text(sample.row)[:SAMPLE_CHARACTERS], reason=sample.reason)
                for sample in later[: MOST_SAMPLES - len(kept)]
            )


def storable(text: str) -> str:
    """Return the text without NUL, the only character that PostgreSQL cannot store."""
    return text.replace("\0", "\ufffd")
