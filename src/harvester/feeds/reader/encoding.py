"""Any encoding of feeds, read as UTF-8.

Text that cannot be decoded becomes bytes that are not UTF-8 either, so that its row is rejected later, with its line
number.
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
#: Enough of a header to recognize UTF-16 by its zeros.
_LOOK_BYTES = 1000
#: The most bytes at the end of a chunk that can belong to an incomplete character.
_LONGEST_BEGINNING = 3
_REPLACEMENT = "\ufffd"


class Utf8Reader:
    """Yields a file's chunks as UTF-8, without a byte order mark.

    Without a mark the first chunk that is not plain ASCII decides the encoding: UTF-8 if most of its other characters
    are UTF-8, else Windows-1252, which includes ISO 8859-1.
    """

    def __init__(self, chunks: Iterable[bytes], encoding: Encoding | None = None) -> None:
        self._chunks = iter(chunks)
        self._encoding = encoding
        self._is_given = encoding is not None
        self.bytes_read = 0

    @property
    def encoding(self) -> Encoding:
        """The encoding as far as it is known; a file of ASCII is UTF-8."""
        return self._encoding or "utf-8"

    def __iter__(self) -> Iterator[bytes]:
        beginning = b""
        while len(beginning) < _LOOK_BYTES and (chunk := self._next()):
            beginning += chunk
        known, mark = _detect(beginning)
        self._encoding = self._encoding or known
        chunk = beginning[len(mark) :]
        if self.encoding.startswith("utf-16"):
            decoder = codecs.getincrementaldecoder(self.encoding)(errors="surrogatepass")
            while chunk:
                yield decoder.decode(chunk).encode(errors="surrogatepass")
                chunk = self._next()
            if decoder.getstate()[0]:
                raise TruncatedFile("The file ends in the middle of a UTF-16 character. Nothing was changed.")
        else:
            held = b""
            while chunk:
                whole, held = _whole_characters(held + chunk)
                yield self._as_utf8(whole)
                chunk = self._next()
            yield self._as_utf8(held)

    def _next(self) -> bytes:
        """Return the next chunk that is not empty; empty at the end."""
        chunk = next(filter(None, self._chunks), b"")
        self.bytes_read += len(chunk)
        return chunk

    def _as_utf8(self, chunk: bytes) -> bytes:
        if self._encoding == "utf-8" or chunk.isascii():
            return chunk
        if not self._is_given:
            self._decide(chunk)
        if self._encoding == "utf-8":
            return chunk
        return chunk.decode("cp1252", errors="surrogateescape").encode(errors="surrogatepass")

    def _decide(self, chunk: bytes) -> None:
        """Compare how many bytes beyond ASCII are UTF-8 with how many are not."""
        text = chunk.decode(errors="replace")
        # A replacement character in the file itself is valid UTF-8.
        invalid = text.count(_REPLACEMENT) - chunk.count(_REPLACEMENT.encode())
        valid = len(text.encode()) - len(text) - 2 * invalid
        if self._encoding is None:
            self._encoding = "utf-8" if valid >= invalid else "cp1252"
        elif valid > invalid:
            raise EncodingUnreadable(
                f"The first {self.bytes_read:,} bytes of the file are partly Windows-1252 and partly UTF-8. Expected "
                "is one encoding for the whole file. Nothing was changed. Ask the partner for UTF-8, or set the "
                "encoding of the feed."
            )


def _detect(beginning: bytes) -> tuple[Encoding | None, bytes]:
    """Return the encoding that the first bytes show, and the mark to leave out."""
    if beginning.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise EncodingUnreadable(
            f"The file is UTF-32: it begins with the bytes {beginning[:4].hex(' ')}. Expected is UTF-8, Windows-1252 "
            "or UTF-16. Nothing was changed. Ask the partner for UTF-8."
        )
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return encoding, mark
    # Latin letters in UTF-16 have a zero in every second byte.
    look = beginning[:_LOOK_BYTES]
    half = len(look) // 2
    zeros_first, zeros_second = look[::2].count(0), look[1::2].count(0)
    if half and zeros_second > half * 0.8 and zeros_first < half * 0.2:
        return "utf-16-le", b""
    if half and zeros_first > half * 0.8 and zeros_second < half * 0.2:
        return "utf-16-be", b""
    return None, b""


def _whole_characters(chunk: bytes) -> tuple[bytes, bytes]:
    """Split off what may be the beginning of a UTF-8 character that continues in the next chunk."""
    for count in range(1, min(_LONGEST_BEGINNING, len(chunk)) + 1):
        byte = chunk[-count]
        if byte < 0x80:  # noqa: PLR2004 - ASCII ends here
            break
        if byte >= 0xC0:  # noqa: PLR2004 - the first byte of a character of several
            return chunk[:-count], chunk[-count:]
    return chunk, b""
