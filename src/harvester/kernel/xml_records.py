"""Flat records out of XML that somebody else wrote: no entities, no declarations, everything bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from harvester.kernel.errors import TerminalError

LONGEST_DOCUMENT_BYTES = 32 * 1024 * 1024
MOST_RECORDS = 100_000
DEEPEST = 20
LONGEST_TEXT = 10_000


class UnreadableXml(TerminalError):
    """The XML document cannot be used."""

    code = "UNREADABLE_XML"


def read_records(document: bytes, tag: str) -> Iterator[dict[str, str]]:
    """Every element of that tag as one mapping of its attributes and its children's texts.

    Raises:
        UnreadableXml: it is no XML, declares entities or a document type, or is larger than any sound one.
    """
    if len(document) > LONGEST_DOCUMENT_BYTES:
        raise UnreadableXml(f"The XML document has more than {LONGEST_DOCUMENT_BYTES} bytes. It was not read.")
    collector = _Collector(tag)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_declaration
    parser.EntityDeclHandler = _refuse_declaration
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.text
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        raise UnreadableXml(
            f"The XML document cannot be read: {expat.ErrorString(error.code)} in line {error.lineno}."
        ) from None
    return iter(collector.records)


def _refuse_declaration(*_declared: object) -> None:
    raise UnreadableXml("The XML document declares its own type or entities, which is refused.")


@dataclass
class _Collector:
    """Builds records while the parser walks."""

    tag: str
    records: list[dict[str, str]] = field(default_factory=list)
    _path: list[str] = field(default_factory=list)
    _record: dict[str, str] | None = None
    _texts: list[str] = field(default_factory=list)
    _length: int = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        if len(self._path) > DEEPEST:
            raise UnreadableXml(f"The XML document nests more than {DEEPEST} elements. It was not read.")
        if self._record is None and tag == self.tag:
            self._record = dict(attributes)
        self._texts, self._length = [], 0

    def text(self, text: str) -> None:
        self._length += len(text)
        if self._length > LONGEST_TEXT:
            raise UnreadableXml(f"A text of the XML document has more than {LONGEST_TEXT} characters.")
        self._texts.append(text)

    def end(self, tag: str) -> None:
        self._path.pop()
        if self._record is None:
            return
        if tag == self.tag and self.tag not in self._path:
            self._close(self._record)
        else:
            self._record.setdefault(tag, "".join(self._texts).strip())
        self._texts, self._length = [], 0

    def _close(self, record: dict[str, str]) -> None:
        if len(self.records) >= MOST_RECORDS:
            raise UnreadableXml(f"The XML document has more than {MOST_RECORDS} records. It was not read.")
        self.records.append(record)
        self._record = None
