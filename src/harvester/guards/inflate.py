"""Decompress gzip, recognized by its first bytes and verified to its last.

File names and settings are unreliable, and a gzip header can lie about the size. So the magic bytes decide, the output
is counted while it is produced, and a file is complete only after its trailer: blocks may be used only once the
iterator has ended.

TransientError
├── TruncatedGzip           the file ends in the middle
└── BadGzip                 damaged, or followed by other data: it is downloaded again
TerminalError
└── InflateLimitExceeded    a bomb, or a file far over the limit
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from isal import isal_zlib

from harvester.kernel.errors import TerminalError, TransientError

GZIP_MAGIC = b"\x1f\x8b"
#: Magic bytes, method, flags.
_HEADER_BYTES = 4
#: Flag bits that no gzip file has; the library ignores them.
_RESERVED_FLAGS = 0xE0
#: The library expects and checks gzip's header and trailer.
_GZIP_FORMAT = 31
#: The library declares its type as a value.
_LIBRARY_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]
#: The prefix of the library's messages, which is of no use to people.
_NUMBER = re.compile(r"\AError -?[0-9]+ ")
#: Input is fed in small slices: the library copies the rest of a slice at the end of each member, which would be
#: quadratic for a file of many empty members.
SLICE_BYTES = 16 * 1024
#: Block-wise writers make one member for each 64 KB; more than these only waste time.
MOST_MEMBERS = 1_000_000
#: Smaller output may have any ratio: a short file of one repeated line compresses a thousandfold.
RATIO_COUNTS_FROM_BYTES = 64 * 1024 * 1024

_NO_SETTING = "no setting changes this limit, so ask the partner for another file"


class TruncatedGzip(TransientError):
    """The compressed file ends in the middle."""

    code = "TRUNCATED_GZIP"


class BadGzip(TransientError):
    """The compressed file is damaged."""

    code = "BAD_GZIP"


class InflateLimitExceeded(TerminalError):
    """The decompressed file exceeds a limit."""

    code = "INFLATE_LIMIT_EXCEEDED"


@dataclass(frozen=True, kw_only=True)
class InflateLimits:
    """Limits of the output.

    Attributes:
        output_bytes: of one file, compressed or not.
        ratio: bytes out for each byte in. Catalogs have 5 to 20, the maximum of gzip is 1,032.
    """

    output_bytes: int = 4 * 1024 * 1024 * 1024
    ratio: int = 200


@dataclass(kw_only=True)
class GzipEnd:
    """What the end of a gzip file proves; known when all of it was read.

    Attributes:
        may_lack_parts: it has several members, and nothing shows that the last of them is there: each is complete by
            itself, so a file that was cut between two of them looks whole. Some writers end with an empty member.
    """

    may_lack_parts: bool = False


def inflate(
    source: Iterable[bytes],
    *,
    limits: InflateLimits | None = None,
    block_bytes: int = 2 * 1024 * 1024,
    may_be_cut: bool = False,
    end: GzipEnd | None = None,
) -> Iterator[bytes]:
    """Yield a file's content in blocks of one size (the last may be smaller), decompressed if it is gzip.

    With `may_be_cut`, the beginning of a file is enough and is not verified: only for previews. `end` is filled in
    before the last block.

    Raises:
        TruncatedGzip, BadGzip, InflateLimitExceeded: the yielded blocks must not be used.
    """
    inflater = _Inflater(limits or InflateLimits())
    ready = bytearray()
    for data in _sliced(source):
        for piece in inflater.feed(data, block_bytes):
            ready += piece
            while len(ready) >= block_bytes:
                with memoryview(ready) as view, view[:block_bytes] as first:
                    block = bytes(first)
                del ready[:block_bytes]
                yield block
    ready += inflater.finish(may_be_cut=may_be_cut)
    if end:
        end.may_lack_parts = inflater.may_lack_parts
    if ready:
        yield bytes(ready)


def is_gzip(first_bytes: bytes) -> bool:
    """Whether a file with this beginning is gzip."""
    return first_bytes.startswith(GZIP_MAGIC)


def _sliced(source: Iterable[bytes]) -> Iterator[bytes]:
    for block in source:
        for start in range(0, len(block), SLICE_BYTES):
            yield block[start : start + SLICE_BYTES]


class _Inflater:
    """Turns slices of a file into pieces of its content."""

    def __init__(self, limits: InflateLimits) -> None:
        self._limits = limits
        self._bytes_in = 0
        self._bytes_out = 0
        self._members = 0
        #: Bytes of content before the current member.
        self._bytes_before = 0
        #: Bytes that are too few to decide: the first of the file, or after a member.
        self._pending = b""
        self._is_plain = False
        self._member: isal_zlib.Decompress | None = None

    @property
    def may_lack_parts(self) -> bool:
        return self._members > 1 and self._bytes_out > self._bytes_before

    def feed(self, data: bytes, piece_bytes: int) -> Iterator[bytes]:
        self._bytes_in += len(data)
        data, self._pending = self._pending + data, b""
        while data := self._begin(data):
            member = self._member
            if member is None:
                yield self._count(data)
                return
            yield from self._drain(member, data, piece_bytes)
            data = b""
            if member.eof:
                data, self._member = member.unused_data, None

    def finish(self, *, may_be_cut: bool) -> bytes:
        """Return the rest at the end of the file, which must not be inside a member."""
        is_open = self._member is not None or is_gzip(self._pending)
        if is_open and may_be_cut:  # mutant: gzip-trailer
            return b""
        if is_open:
            raise TruncatedGzip("The compressed file ends in the middle. None of it is used.")
        if self._members == 0:
            return self._count(self._pending)
        if self._pending.strip(b"\0"):
            raise self._bad("other data follows its end")
        return b""

    def _begin(self, data: bytes) -> bytes:
        """Open a member if none is open, unless the file is not compressed; return the data that is ready for use."""
        if self._is_plain or self._member is not None:
            return data
        if self._members:
            # Files on tape are padded with zeros.
            data = data.lstrip(b"\0")
        if len(data) < (_HEADER_BYTES if is_gzip(data) else len(GZIP_MAGIC)):
            self._pending = data
            return b""
        if is_gzip(data):
            if data[_HEADER_BYTES - 1] & _RESERVED_FLAGS:
                raise self._bad("its header has unknown flags")
            self._members += 1
            self._bytes_before = self._bytes_out
            if self._members > MOST_MEMBERS:
                raise self._too_much(f"it has more than {MOST_MEMBERS} parts", _NO_SETTING)
            self._member = isal_zlib.decompressobj(wbits=_GZIP_FORMAT)
        elif self._members:
            raise self._bad("other data follows its end")
        else:
            self._is_plain = True
        return data

    def _drain(self, member: isal_zlib.Decompress, data: bytes, piece_bytes: int) -> Iterator[bytes]:
        """Decompress until the data or the member ends, never more than a piece at once."""
        is_full = False
        # The library reads ahead: after a full piece there may be more, although all of the data was consumed.
        while (data or is_full) and not member.eof:
            try:
                piece = member.decompress(data, piece_bytes)
            except _LIBRARY_ERROR as error:
                raise self._bad(_NUMBER.sub("", str(error)).lower() or "it cannot be read") from None
            yield self._count(piece)
            data, is_full = member.unconsumed_tail, len(piece) == piece_bytes

    def _count(self, piece: bytes) -> bytes:
        self._bytes_out += len(piece)
        if self._bytes_out > self._limits.output_bytes:
            verb = "has" if self._is_plain else "inflates to"
            raise self._too_much(f"it {verb} more than {self._limits.output_bytes} bytes", "if it is, raise the limit")
        is_large = self._bytes_out > RATIO_COUNTS_FROM_BYTES
        if is_large and self._bytes_out > self._bytes_in * self._limits.ratio:
            raise self._too_much(f"each byte inflates to more than {self._limits.ratio}", _NO_SETTING)
        return piece

    def _bad(self, why: str) -> BadGzip:
        return BadGzip(f"The compressed file is damaged after {self._bytes_in} bytes: {why}. None of it is used.")

    def _too_much(self, why: str, what_then: str) -> InflateLimitExceeded:
        what = "file" if self._is_plain else "compressed file"
        return InflateLimitExceeded(
            f"The {what} was rejected: {why}. None of it is used. Check that the path is right; {what_then}."
        )
