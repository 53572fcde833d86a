"""Documents name only files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "harvester"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: A path in backticks that ends with a module or a folder of the package, such as `feeds/runs.py` or `feeds/networks/`.
PATH = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_0-9]+\.(?:py|sql|md))?)`")
LINK = re.compile(r"\]\(((?!https?:)[^)#]+)(?:#[^)]*)?\)")


def named(document: Path) -> list[str]:
    """Paths of the package that a document names; other folders of the project are left out."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    return [path for path in PATH.findall(document.read_text()) if path.split("/")[0] in folders]


def test_the_architecture_names_files_step_by_step():
    assert len(named(ROOT / "docs" / "architecture.md")) > 40


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_exists(document):
    assert [path for path in named(document) if not (PACKAGE / path).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_between_documents_leads_somewhere(document):
    links = LINK.findall(document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []
