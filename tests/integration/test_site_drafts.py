"""A new site file is written from one page, with its fixture, and reads that page."""

import json
import shutil
import subprocess
import sys

import pytest
from tests.support.forked import ROOT
from tests.support.scripted_shop import product_page

from harvester.kernel.errors import Conflict, InvalidInput
from harvester.scraping.site_draft import FIXTURES, SITES, write_draft

URL = "https://www.tools-of-olga.example/p/1"


@pytest.fixture
def checkout(tmp_path):
    shutil.copytree(ROOT / "src/harvester", tmp_path / "src/harvester", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def draft(checkout, body=None, **more):
    body = body or product_page().encode()
    given = {"domain": "tools-of-olga.example", "url": URL, "content_type": "text/html", "body": body, **more}
    return write_draft(checkout, **given)


def test_a_site_file_is_written_registered_and_reads_its_page(checkout):
    made = draft(checkout)
    assert made.site_id == "tools_of_olga"
    assert made.reading.outcome == "OFFER"
    assert made.places["price"][0] == "p.price::text"
    expected = json.loads((checkout / FIXTURES / made.site_id / "in_stock.json").read_text())
    assert expected["offer"]["price"] == "19.99 USD"
    assert (checkout / FIXTURES / made.site_id / "in_stock.html").read_text() == product_page()
    program = (
        "from pathlib import Path\n"
        "from harvester.scraping.extraction import read\n"
        "from harvester.scraping.site import ReadContext\n"
        "from harvester.scraping.sites import site_for_domain\n"
        f"body = Path({str(checkout / FIXTURES / made.site_id / 'in_stock.html')!r}).read_bytes()\n"
        "site = site_for_domain('tools-of-olga.example')\n"
        f"print(read(body, 'text/html', site.id, None, ReadContext(url={URL!r})).offer.price)\n"
    )
    environment = {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout == "19.99 USD\n"


def test_what_a_person_sees_helps_where_the_page_is_not_certain(checkout):
    body = product_page().replace('"price": "19.99"', '"price": "1.99"').encode()
    with pytest.raises(InvalidInput, match="Say what you see"):
        draft(checkout, body)
    made = draft(checkout, body, known={"title": "Hammer", "price": "19.99 USD"})
    assert made.places["price"] == ("p.price::text",)


def test_an_existing_site_is_not_overwritten(checkout):
    draft(checkout)
    before = (checkout / SITES / "__init__.py").read_text()
    with pytest.raises(Conflict, match="already"):
        draft(checkout)
    assert (checkout / SITES / "__init__.py").read_text() == before


def test_only_a_checkout_is_written_to(tmp_path):
    with pytest.raises(InvalidInput, match="not a checkout"):
        draft(tmp_path)
    assert list(tmp_path.iterdir()) == []
