"""What was refused or noticed: exact counts, and the first rows of each kind to look at."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harvester.guards.redaction import redact_text
from harvester.kernel.network import Field
from harvester.kernel.rejects import Fault, RejectCode, WarningCode
from harvester.kernel.urls import LONGEST_URL

MOST_SAMPLES = 50
#: Enough to recognise a row by, and little enough for a page of fifty.
SAMPLE_CHARACTERS = 300
#: What is secret is known by how it ends, which may stand behind what is shown: an address with a password in it.
LOOKED_AT_CHARACTERS = SAMPLE_CHARACTERS + LONGEST_URL
#: Different stock texts that are kept to be named. Words for stock are few; more of them belong to another column.
MOST_STOCK_TEXTS = 1_000

Code: TypeAlias = RejectCode | WarningCode


@dataclass(frozen=True, kw_only=True, order=True)
class Sample:
    """A row to look at.

    Attributes:
        line: where it begins in the file; the header is line 1.
        row: its beginning as it stands in the file, without secrets.
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
        stock_cells: cells of the stock column that are not empty, of rows that are valid but for their stock.
        unknown_stock_cells: those of them that cannot be read.
        unknown_stock: the most frequent texts of these, and how often each occurs; not all of them if there are many.
        spared: valid rows in which an identifier is missing that another column has.
    """

    counts: Counter[Code] = field(default_factory=Counter)
    samples: dict[Code, list[Sample]] = field(default_factory=dict)
    stock_cells: int = 0
    unknown_stock_cells: int = 0
    unknown_stock: Counter[str] = field(default_factory=Counter)
    spared: Counter[Field] = field(default_factory=Counter)

    def refuse(self, fault: Fault, line: int, row: bytes) -> None:
        """Note one row that is refused."""
        self.counts[fault.code] += 1
        self.show(fault.code, line, row, fault.sentence)

    def show(self, code: Code, line: int, row: bytes, reason: str = "") -> None:
        """Keep a row to look at, if there are not enough of its kind."""
        kept = self.samples.setdefault(code, [])
        if len(kept) < MOST_SAMPLES:
            kept.append(Sample(line=line, row=cut(row), reason=reason))

    def add(self, others: Sequence["Findings"]) -> None:
        """Take over what was found in parts that come later in the file, side by side."""
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
            kept.extend(map(_redacted, later[: MOST_SAMPLES - len(kept)]))


def cut(row: bytes) -> str:
    """The beginning of a row as text; what is no text becomes a replacement character."""
    # No character has more than four bytes.
    text = row[: LOOKED_AT_CHARACTERS * 4].decode(errors="replace").rstrip("\r\n")[:LOOKED_AT_CHARACTERS]
    return storable(text)


def storable(text: str) -> str:
    """PostgreSQL keeps every character but NUL."""
    return text.replace("\0", "\ufffd")


def _redacted(sample: Sample) -> Sample:
    return Sample(line=sample.line, row=redact_text(sample.row)[:SAMPLE_CHARACTERS], reason=sample.reason)
