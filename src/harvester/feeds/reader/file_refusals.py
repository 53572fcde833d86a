"""Why a file is no catalog, told so that somebody can do something about it: what was expected, and what was found."""

import re
from typing import Final

from harvester.feeds.reader.binding import Binding, missing
from harvester.feeds.reader.errors import EmptyFile, EncodingUnreadable, HeaderUnreadable, HtmlInsteadOfCsv
from harvester.guards.redaction import redact_text
from harvester.kernel.errors import TerminalError
from harvester.kernel.network import Field, Network
from harvester.kernel.urls import LONGEST_URL

SHOWN_BYTES: Final = 120
SHOWN_NAMES: Final = 12
_LONGEST_LIST: Final = 400
DELIMITER_NAMES: Final = {"\t": "tab", ",": "comma", "|": "pipe", ";": "semicolon"}
_WANTED = "Expected is text, plain or gzip, whose first line names the columns."
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|script)\b", re.IGNORECASE)
#: How files begin that partners put in a catalog's place; seen behind the decoder, which takes odd bytes for letters.
_OTHER_KINDS: Final = (
    (b"\x1f", "compressed twice with gzip"),
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook"),
    (b"%PDF", "a PDF document"),
    (b"BZh", "compressed with bzip2"),
    ("\xfd7zXZ".encode(), "compressed with xz"),
    ("(\xb5/\xfd".encode(), "compressed with zstd"),
    (b"7z", "a 7z archive"),
    (b"<?xml", "XML"),
    (b"{", "JSON"),
    (b"[", "JSON"),
)


def shown(head: bytes) -> str:
    """The first bytes of a file, to show to a person."""
    # Cut last: half a password would not be known as one.
    text = head[: SHOWN_BYTES + LONGEST_URL].decode(errors="backslashreplace")
    return repr(redact_text(text)[:SHOWN_BYTES])


def refuse_no_catalog(head: bytes) -> None:
    """Refuse a file in which no header needs to be looked for.

    Raises:
        EmptyFile, HtmlInsteadOfCsv: there is nothing, or a web page.
    """
    text = head.lstrip()
    if not text:
        found = f"nothing but {len(head)} blanks and line ends" if head else "no byte"
        raise EmptyFile(
            f"The file is empty: there is {found} in it. {_WANTED} What is known stays as it is; check whether the "
            "partner is still writing it."
        )
    if text.startswith(b"<") and _HTML.search(head[:1024]):
        raise HtmlInsteadOfCsv(
            "The file is a web page and not a catalog, probably an error message of the partner's server. It begins "
            f"with {shown(head)}. {_WANTED} Nothing of it is used; check the path of the feed."
        )


def unreadable(head: bytes, best: Binding | None, delimiter: str, network: Network) -> TerminalError:
    """What to say of a file whose first line is not understood; `best` is the reading that makes most sense of it."""
    lacking = missing(best) if best else ()
    text = head.lstrip()
    for beginning, kind in _OTHER_KINDS:
        if text.startswith(beginning):
            return HeaderUnreadable(
                f"The file is {kind} and not a catalog. It begins with {shown(head)}. {_WANTED} Nothing of it is used; "
                "check the path of the feed, or ask the partner for such a file.",
                lacking,
            )
    if b"\0" in text.partition(b"\n")[0]:
        return EncodingUnreadable(
            f"The file is no text in UTF-8, Windows-1252 or UTF-16: its first line has zeros in it. It begins with "
            f"{shown(head)}. {_WANTED} Nothing of it is used; check the path of the feed, or ask the partner for UTF-8."
        )
    header, names = (best.header, best.names) if best else ((), {})
    return HeaderUnreadable(_why(head, best, delimiter, network), lacking, header, names)


def _why(head: bytes, best: Binding | None, delimiter: str, network: Network) -> str:
    """What was expected of the first line, and what was found."""
    tried = ", ".join(_name(mark) for mark in network.delimiters)
    if best is None or not best.columns:
        groups = missing(best) if best else []
        expected = " and ".join(_expected(group, network) for group in groups) or "the names of columns"
        return (
            f"The first line names no column that is known of {network.label}, whichever separates them ({tried}). It "
            f"needs {expected}. The file begins with {shown(head)}. Nothing of it is used; check the path of the feed "
            "and its network, and whether the file has a header."
        )
    expected = " and ".join(_expected(group, network) for group in missing(best))
    names = ", ".join(repr(name) for name in best.header[:SHOWN_NAMES])
    known = ", ".join(f"{name!r} for the {field}" for field, [name, *_] in best.names.items())
    return (
        f"The first line lacks {expected}. Of {tried}, {_name(delimiter)} fits best and makes {len(best.header)} "
        f"columns: {redact_text(names)[:_LONGEST_LIST]}. Known are {redact_text(known)[:_LONGEST_LIST]}. The file "
        f"begins with {shown(head)}. Nothing of it is used; check the path of the feed and its network, and whether "
        "the file has a header."
    )


def too_many_columns(head: bytes, most: int) -> HeaderUnreadable:
    return HeaderUnreadable(
        f"The first line has more than {most:,} columns, which no catalog has; it begins with {shown(head)}. Nothing "
        "of it is used; check the path of the feed, and whether the file has line ends."
    )


def _name(delimiter: str) -> str:
    return DELIMITER_NAMES.get(delimiter, delimiter)


def _expected(group: tuple[Field, ...], network: Network) -> str:
    names = [alias for field in group for alias in network.aliases.get(field, ())]
    what = " or ".join(field.value.replace("_", " ") for field in group)
    return f"a column for the {what} (such as {', '.join(names[:4])})"
