"""Faults as small numbers in a column; 0 means none."""

from typing import Final

import polars as pl

from harvester.kernel.rejects import Fault, RejectCode

FAULTS: Final = tuple(Fault)
NUMBER: Final = {fault: number for number, fault in enumerate(FAULTS, start=1)}
NUMBERS_OF_CODE: Final = {
    code: [number for fault, number in NUMBER.items() if fault.code is code] for code in RejectCode
}
FAULT_TYPE: Final = pl.UInt8()


def no_faults(height: int) -> pl.Series:
    return pl.zeros(height, FAULT_TYPE, eager=True)


def fault_of(number: int) -> Fault:
    return FAULTS[number - 1]
