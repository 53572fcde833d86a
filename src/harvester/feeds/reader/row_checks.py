"""Which rows are refused, and what is noticed about the others."""

from functools import cache
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.feeds.reader.blocks import Block
from harvester.feeds.reader.faults import FAULT_TYPE, NUMBER, NUMBERS_OF_CODE, fault_of
from harvester.feeds.reader.findings import MOST_SAMPLES, Findings, storable
from harvester.feeds.reader.lookup import collected
from harvester.feeds.reader.texts import trimmed
from harvester.kernel.network import Field
from harvester.kernel.rejects import Fault, WarningCode

#: Characters of a stock text that is shown.
SHOWN_STOCK: Final = 60
_TITLE_FAULT: Final = "title_fault"
#: Columns of faults, in the order in which people should hear of them.
_FAULTS: Final = (
    "text_fault",
    _TITLE_FAULT,
    "link_fault",
    "period_fault",
    "price_fault",
    "item_id_fault",
    "sku_fault",
    "stock_fault",
)  # mutant: row-faults
_WARNINGS: Final = {
    WarningCode.UNKNOWN_STOCK: "unknown_stock",
    WarningCode.BAD_GTIN: "bad_gtin",
    WarningCode.BAD_IMAGE_URL: "bad_image",
    WarningCode.BAD_ORIGINAL_PRICE: "bad_original",
}


def judged(rows: pl.DataFrame, block: Block) -> tuple[pl.DataFrame, Findings, NDArray[np.int64]]:
    """The valid rows, why the others are refused, and the lines about which there is a warning.

    There is a row for each record of the block.
    """
    findings = Findings()
    is_warned = pl.zeros(rows.height, pl.Boolean, eager=True)
    present = tuple(name for name in _FAULTS if name in rows.columns)
    faults = collected(rows.lazy().select(_first_fault(present))).to_series()
    is_valid = faults == 0
    if not is_valid.all():
        _note_faults(findings, block, faults)
    for code, name in _WARNINGS.items():
        if name in rows.columns and rows[name].any():
            _note_warning(findings, block, code, rows[name] & is_valid)
            is_warned |= rows[name]
    for field in (Field.ITEM_ID, Field.SKU):
        if (name := f"{field.value}_spare") in rows.columns and (spared := (rows[name] != "") & is_valid).any():
            # A better identity leaves no gap.
            gaps = spared & (rows[Field.ITEM_ID.value] == "") if Field.ITEM_ID.value in rows.columns else spared
            findings.spared[field] += int(gaps.sum())
            is_warned |= spared
    if Field.STOCK.value in rows.columns:
        _note_stock(findings, rows, is_valid | (faults == NUMBER[Fault.STOCK_UNREADABLE]))
    return rows if is_valid.all() else rows.filter(is_valid), findings, block.lines[is_warned.to_numpy()]


@cache
def _first_fault(present: tuple[str, ...]) -> pl.Expr:
    """Of each row the first fault that there is, the title's among those that are present in columns."""
    untitled = pl.when(pl.col("title") == "").then(NUMBER[Fault.NO_TITLE]).otherwise(0)  # mutant: title-required
    fault = pl.lit(0, FAULT_TYPE)
    for name in reversed(_FAULTS):
        if name in present or name == _TITLE_FAULT:
            column = untitled if name == _TITLE_FAULT else pl.col(name)
            fault = pl.when(column != 0).then(column).otherwise(fault)
    return fault.cast(FAULT_TYPE).alias("fault")


def _note_faults(findings: Findings, block: Block, faults: pl.Series) -> None:
    """Count the refused rows, and keep the first of each code."""
    occurring = faults.filter(faults != 0).value_counts().rows()
    for number, count in occurring:
        findings.counts[fault_of(number).code] += count
    for code in {fault_of(number).code for number, _ in occurring}:
        for place in faults.is_in(NUMBERS_OF_CODE[code]).arg_true().head(MOST_SAMPLES):
            findings.show(code, int(block.lines[place]), block.record(place), fault_of(faults[place]).sentence)


def _note_warning(findings: Findings, block: Block, code: WarningCode, mask: pl.Series) -> None:
    places = mask.arg_true()
    if len(places):
        findings.counts[code] += len(places)
        for place in places.head(MOST_SAMPLES):
            findings.show(code, int(block.lines[place]), block.record(place))


def _note_stock(findings: Findings, rows: pl.DataFrame, is_asked: pl.Series) -> None:
    """Count the stock texts that cannot be read, and those that are there at all; an empty one is never known."""
    findings.stock_cells += int(is_asked.sum())
    if "unknown_stock" in rows.columns and (unknown := rows["unknown_stock"] & is_asked).any():
        texts = rows.filter(unknown).select(trimmed(pl.col(Field.STOCK.value))).to_series()
        findings.stock_cells -= int((texts == "").sum())
        for text, count in texts.filter(texts != "").value_counts().iter_rows():
            findings.unknown_stock_cells += count
            findings.unknown_stock[storable(text[:SHOWN_STOCK])] += count
