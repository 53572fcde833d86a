"""Any encoding that feeds come in, read as UTF-8.

What cannot be decoded becomes bytes that are no UTF-8 either, so that the row it stands in is found and refused where
rows are looked at, with its line number.
"""

import codecs
from collections.abc import Iterable, Iterator
from typing import Literal

from harvester.feeds.reader.errors import EncodingUnreadable, TruncatedFile

Encoding = Literal["utf-8", "cp1252", "utf-16-le", "utf-16-be"]

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Enough of a header to see every second byte of UTF-16.
_LOOK_BYTES = 1000
#: At most so many bytes of a character can stand at the end of a chunk without their last one.
_LONGEST_BEGINNING = 3
_REPLACEMENT = "\ufffd"


class Utf8Reader:
    """Yields a file's chunks as UTF-8, without a byte order mark.

    Without a mark the encoding is decided by the first chunk that is not plain ASCII: as UTF-8 if most of what it has
    beyond ASCII is UTF-8, else as Windows-1252, of which ISO 8859-1 is a part.
    """

    def __init__(self, chunks: Iterable[bytes], encoding: Encoding | None = None) -> None:
        self._chunks = iter(chunks)
        self._encoding = encoding
        self._is_told = encoding is not None
        self.bytes_read = 0

    @property
    def encoding(self) -> Encoding:
        """As far as it is known by now: a file of ASCII is UTF-8."""
        return self._encoding or "utf-8"

    def __iter__(self) -> Iterator[bytes]:
        beginning = self._beginning()
        known, mark = _marked(beginning)
        self._encoding = self._encoding or known
        first = beginning[len(mark) :]
        if self.encoding.startswith("utf-16"):
            yield from self._from_utf16(first)
        else:
            yield from self._from_bytes(first)

    def _beginning(self) -> bytes:
        beginning = b""
        while len(beginning) < _LOOK_BYTES and (chunk := self._next()):
            beginning += chunk
        return beginning

    def _next(self) -> bytes:
        """The next chunk that is not empty; empty at the end."""
        chunk = next(filter(None, self._chunks), b"")
        self.bytes_read += len(chunk)
        return chunk

    def _from_utf16(self, chunk: bytes) -> Iterator[bytes]:
        decoder = codecs.getincrementaldecoder(self.encoding)(errors="surrogatepass")
        while chunk:
            yield decoder.decode(chunk).encode(errors="surrogatepass")
            chunk = self._next()
        if decoder.getstate()[0]:
            raise TruncatedFile("The file ends in the middle of a character of UTF-16. Nothing was changed.")

    def _from_bytes(self, chunk: bytes) -> Iterator[bytes]:
        held = b""
        while chunk:
            whole, held = _whole_characters(held + chunk)
            yield self._as_utf8(whole)
            chunk = self._next()
        yield self._as_utf8(held)

    def _as_utf8(self, chunk: bytes) -> bytes:
        if self._encoding == "utf-8" or chunk.isascii():
            return chunk
        if not self._is_told:
            self._decide(*_evidence(chunk))
        if self._encoding == "utf-8":
            return chunk
        return chunk.decode("cp1252", errors="surrogateescape").encode(errors="surrogatepass")

    def _decide(self, sound: int, unsound: int) -> None:
        if self._encoding is None:
            self._encoding = "utf-8" if sound >= unsound else "cp1252"
        elif sound > unsound:
            raise EncodingUnreadable(
                "One part of the file is Windows-1252 and another UTF-8, which shows within its first "
                f"{self.bytes_read:,} bytes. Expected is one encoding for all of it. Nothing of it is used; ask the "
                "partner for UTF-8, or set the encoding of the feed."
            )


def _marked(beginning: bytes) -> tuple[Encoding | None, bytes]:
    """The encoding that the first bytes give away, and the mark to leave out."""
    if beginning.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise EncodingUnreadable(
            f"The file is UTF-32: it begins with the bytes {beginning[:4].hex(' ')}. Expected is UTF-8, Windows-1252 "
            "or UTF-16. Nothing of it is used; ask the partner for UTF-8."
        )
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return encoding, mark
    return _unmarked_utf16(beginning[:_LOOK_BYTES]), b""


def _unmarked_utf16(beginning: bytes) -> Encoding | None:
    """Latin letters in UTF-16 have a zero in every second byte."""
    half = len(beginning) // 2
    zeros_first, zeros_second = beginning[::2].count(0), beginning[1::2].count(0)
    if half and zeros_second > half * 0.8 and zeros_first < half * 0.2:
        return "utf-16-le"
    if half and zeros_first > half * 0.8 and zeros_second < half * 0.2:
        return "utf-16-be"
    return None


def _whole_characters(chunk: bytes) -> tuple[bytes, bytes]:
    """Hold back what may be the beginning of a character of UTF-8 whose rest comes with the next chunk."""
    for count in range(1, min(_LONGEST_BEGINNING, len(chunk)) + 1):
        byte = chunk[-count]
        if byte < 0x80:  # noqa: PLR2004 - ASCII ends here
            break
        if byte >= 0xC0:  # noqa: PLR2004 - the first byte of a character of several
            return chunk[:-count], chunk[-count:]
    return chunk, b""


def _evidence(chunk: bytes) -> tuple[int, int]:
    """How much beyond ASCII is UTF-8, and how much is not."""
    text = chunk.decode(errors="replace")
    # A replacement character that the partner wrote is sound UTF-8; only those that decoding puts in are not.
    unsound = text.count(_REPLACEMENT) - chunk.count(_REPLACEMENT.encode())
    sound = len(text.encode()) - len(text) - 2 * unsound
    return sound, unsound
