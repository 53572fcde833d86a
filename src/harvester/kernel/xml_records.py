"""Read flat records from untrusted XML: no entities, no declarations, everything bounded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from harvester.kernel.errors import TerminalError

LONGEST_DOCUMENT_BYTES = 32 * 1024 * 1024
MOST_RECORDS = 100_000
DEEPEST = 20
#: Longer texts are cut, so that one of them does not make the other records unreadable.
LONGEST_TEXT = 10_000
#: The end of a text that was cut. No number and no path ends like this, so none is taken from such a text.
CUT = "\u2026"


class UnreadableXml(TerminalError):
    """The XML document cannot be used."""

    code = "UNREADABLE_XML"


def read_records(document: bytes, tag: str) -> Iterator[dict[str, str]]:
    """Return every element with this tag as a mapping of its attributes and its children's texts.

    Raises:
        UnreadableXml: it is not XML, declares entities or a document type, or exceeds a limit.
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
    raise UnreadableXml("The XML document declares its own type or entities, which is not allowed.")


@dataclass
class _Collector:
    """Collects records during parsing."""

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
        if self._length > LONGEST_TEXT:
            return
        self._length += len(text)
        self._texts.append(text)
        if self._length > LONGEST_TEXT:
            self._texts = ["".join(self._texts)[:LONGEST_TEXT], CUT]

    def end(self, tag: str) -> None:
        self._path.pop()
        if self._record is None:
            return
        if tag == self.tag and self.tag not in self._path:
            if len(self.records) >= MOST_RECORDS:
                raise UnreadableXml(f"The XML document has more than {MOST_RECORDS} records. It was not read.")
            self.records.append(self._record)
            self._record = None
        else:
            self._record.setdefault(tag, "".join(self._texts).strip())
        self._texts, self._length = [], 0
