"""Existing retailers and sources come in from two files: matched by domain, reported where not, once for all."""

import pytest
from tests.support.catalog import audited
from tests.support.command import harvester as process
from tests.support.commands_inside import harvester

from harvester.catalog import shop_import
from harvester.catalog.csv_rows import read_rows
from harvester.catalog.models import Retailer, Source
from harvester.kernel.actor import system
from harvester.kernel.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("database")

RETAILERS = (
    "name,website\nShop,https://www.shop.example/\nShop US,https://us.shop.example\nOther,https://other.example\n"
)
SOURCES = """name,url,kind,created_at,upc_trusted
Shop new,https://shop.example/,DIRECT,2024-02-01,true
Shop old,https://eu.shop.example/de,,2023-01-01T00:00:00Z,
Shop feed,https://shop.example/feed,AFFILIATE_FEED,2020-01-01,no
US,https://www.us.shop.example,DIRECT,,
Other feed,https://other.example,AFFILIATE_FEED,,
Mine,https://myshop.example,DIRECT,,
"""


@pytest.fixture
def files(tmp_path):
    def write(retailers=RETAILERS, sources=SOURCES):
        (tmp_path / "retailers.csv").write_text(retailers)
        (tmp_path / "sources.csv").write_text(sources)
        return tmp_path / "retailers.csv", tmp_path / "sources.csv"

    return write


def bring_in(paths, **options):
    rows = read_rows(paths[0], shop_import.RETAILER_COLUMNS, ("name", "website"))
    more = read_rows(paths[1], shop_import.SOURCE_COLUMNS, ("name", "url"))
    return shop_import.import_rows(system("test"), rows, more, **options)


def owners():
    return dict(Source.objects.values_list("name", "retailer__name"))


def test_sources_go_to_the_narrowest_domain_and_the_unmatched_stay_out(files):
    done = bring_in(files())
    assert owners() == {
        "Shop new": "Shop", "Shop old": "Shop", "Shop feed": "Shop", "US": "Shop US", "Other feed": "Other",
    }  # fmt: skip
    [unmatched] = done.unmatched
    assert (unmatched.line, unmatched.column) == (7, "url")
    assert "myshop.example" in unmatched.reason
    assert not done.problems


def test_the_oldest_direct_source_becomes_primary_and_an_affiliate_never_by_itself(files):
    bring_in(files())
    primary = Source.objects.filter(is_display_primary=True).values_list("name", flat=True)
    assert sorted(primary) == ["Shop old", "US"]


def test_a_retailer_that_has_a_primary_keeps_it(files):
    bring_in(files())
    older = SOURCES + "Shop oldest,https://shop.example/,DIRECT,2001-01-01,\n"
    done = bring_in(files(sources=older))
    assert done.sources_created == ["Shop oldest"]
    assert Source.objects.get(is_display_primary=True, retailer__name="Shop").name == "Shop old"


def test_a_second_import_changes_nothing(files):
    bring_in(files())
    before = (list(Retailer.objects.values()), list(Source.objects.values()), audited())
    done = bring_in(files())
    assert (list(Retailer.objects.values()), list(Source.objects.values()), audited()) == before
    assert (done.retailers_known, done.sources_known, len(done.unmatched)) == (3, 5, 1)


def test_a_dry_run_prints_the_same_and_leaves_nothing(files):
    dry = bring_in(files(), dry_run=True)
    assert not Retailer.objects.exists()
    assert not audited()
    assert dry == bring_in(files())


BAD = {
    "website": ("x,shop.test\n", "", "retailers", "http"),
    "url": ("", "x,nowhere,,,\n", "sources", "http or https address"),
    "kind": ("", "x,https://shop.example,FEED,,\n", "sources", "DIRECT, AFFILIATE_FEED, OTHER"),
    "created_at": ("", "x,https://shop.example,,yesterday,\n", "sources", "2024-05-01"),
    "upc_trusted": ("", "x,https://shop.example,,,maybe\n", "sources", "true, false"),
    "name": ("", "US,https://other.example,,,\n", "sources", "another name"),
}


@pytest.mark.parametrize("column", BAD)
def test_a_bad_line_is_reported_with_line_column_and_allowed_values_and_the_rest_is_imported(files, column):
    retailer, source, file, allowed = BAD[column]
    done = bring_in(files(RETAILERS + retailer, SOURCES + source))
    [problem] = done.problems
    assert (problem.file, problem.column) == (file, column)
    assert problem.line == (5 if retailer else 8)
    assert allowed in problem.reason
    assert len(owners()) == 5


@pytest.mark.parametrize(
    ("sources", "why"),
    [
        ("name\nx\n", "line 1: the column url is missing"),
        ("name,url,colour\n", "line 1: the column 'colour' is unknown; allowed are name, url"),
        ("name,url,Name\n", "line 1: the column 'Name' is there twice"),
        ('name,url\n"a\nb",https://shop.example\nx\n', "line 4: it has 1 fields, the header has 2"),
        ('name,url\n"x"y,https://shop.example\n', "line 2"),
    ],
)
def test_a_file_that_cannot_be_read_as_a_whole_imports_nothing(files, sources, why):
    with pytest.raises(InvalidInput, match=why.replace("(", r"\(")):
        bring_in(files(sources=sources))
    assert not Retailer.objects.exists()


def test_the_command_prints_what_it_did_and_what_it_left_out(files):
    dry = process("import", *files(), "--dry-run")
    assert "5 sources would be added" in dry.out
    ran = harvester("import", *files())
    assert ran.code == 1
    assert "3 retailers were added, 0 existed already." in ran.out
    assert "myshop.example" in ran.out
    again = harvester("import", *files(sources="name,url\nUS,https://us.shop.example\n"), "--json")
    assert again.code == 0
    assert (again.json["sources_known"], again.json["unmatched"]) == (1, [])
    missing = harvester("import", "nowhere.csv", files()[1])
    assert missing.code == 2
    assert "nowhere.csv: the file cannot be read" in missing.err
