"""`make schema`: write docs/schema.md from a new database and the comments in it."""

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.apps import apps

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "schema.md"
SOURCE = ROOT / "src" / "harvester"
HEAD = """# Database schema

Generated from a new database and the comments in it; run `make schema` to update it. The reasons behind the tables are
in their migrations (`src/harvester/<app>/migrations/*.sql`) and in [architecture.md](architecture.md). Of each table:
what it is for, its columns, and its indexes and checks. In the column "key", `primary` and `unique` name what the table
is found by, and an arrow the table that a column refers to. Volume tables refer to others without foreign keys, so that
they can be filled fast. Tables with a partition key have a partition per month and a default one.
"""
REST = """## Django and its apps

These tables belong to Django, except that the users in them are those of `users`: {tables}.
"""
#: The migrations are read only for which app makes a table, and in which order.
_MADE = re.compile(
    r"^(?:CREATE (?:UNLOGGED )?|CREATE OR REPLACE |    EXECUTE format\('CREATE UNLOGGED )"
    r"(TABLE|VIEW) (\w+)(?! PARTITION OF)\b(%s)?",
    re.MULTILINE,
)

_RELATION = """
SELECT obj_description(oid), pg_get_partkeydef(oid), relpersistence = 'u' FROM pg_class WHERE oid = to_regclass(%s)
"""
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
    CASE WHEN a.attidentity <> '' THEN 'identity' ELSE pg_get_expr(d.adbin, d.adrelid) END,
    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)),
    EXISTS (SELECT FROM pg_constraint k
            WHERE k.conrelid = a.attrelid AND k.contype = 'u' AND k.conkey = ARRAY[a.attnum]),
    (SELECT confrelid::regclass::text FROM pg_constraint k
     WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum]),
    col_description(a.attrelid, a.attnum)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# Not those of primary keys and of single unique columns, which the columns name.
_INDEXES = """
SELECT c.relname, pg_get_indexdef(c.oid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = %s::regclass AND NOT EXISTS (
    SELECT FROM pg_constraint k WHERE k.conindid = c.oid AND k.contype IN ('p', 'u') AND (
        k.contype = 'p' OR cardinality(k.conkey) = 1)) ORDER BY 1
"""
_CHECKS = """
SELECT conname, pg_get_constraintdef(oid, true) FROM pg_constraint
WHERE conrelid = %s::regclass AND contype = 'c' ORDER BY 1
"""
_OTHERS = """
SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
    AND NOT relispartition ORDER BY 1
"""


def markdown(cursor: Any) -> str:
    """Return the page as Markdown. The cursor reads a database that is migrated."""
    parts, named = [HEAD], set()
    for app in (config.label for config in apps.get_app_configs() if (SOURCE / config.label / "migrations").is_dir()):
        parts.append(f"## {app}\n")
        for kind, name, shown in made_by(app):
            parts.append(relation(cursor, kind, name, shown))
            named.add(name.rstrip("0"))
    others = [name for name in _ask(cursor, _OTHERS) if name.rstrip("0123456789") not in named]
    parts.append(REST.format(tables=", ".join(f"`{name}`" for name in others if not name.startswith("test_"))))
    return "\n".join(parts)


def made_by(app: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind and the name of what an app makes, and the name to show; of staging tables the first of each."""
    if app == "ops":
        yield "TABLE", "users", "users"
    for path in [*sorted((SOURCE / app / "migrations").glob("*.sql")), *sorted((SOURCE / app / "sql").glob("*.sql"))]:
        for kind, name, slots in _MADE.findall(path.read_text()):
            yield kind, f"{name}0" if slots else name, f"{name}0 to {name}15" if slots else name


def relation(cursor: Any, kind: str, name: str, shown: str) -> str:
    cursor.execute(_RELATION, [name])
    purpose, partition_key, is_unlogged = cursor.fetchone()
    facts = [purpose or ""]
    facts += [f"Partition key: `{partition_key}`."] if partition_key else []
    facts += ["Unlogged."] if is_unlogged else []
    parts = [f"### {shown}\n", " ".join(facts) + "\n"]
    columns = _ask(cursor, _COLUMNS, name)
    if kind == "VIEW":
        return "\n".join([*parts, "View: " + ", ".join(f"`{column}`" for column, *_ in columns) + ".\n"])
    parts += ["| column | type | null | default | key | meaning |", "| --- | --- | --- | --- | --- | --- |"]
    parts += [_row(column) for column in columns]
    for title, query, short in (("Indexes", _INDEXES, _index), ("Checks", _CHECKS, _check)):
        if found := _ask(cursor, query, name):
            parts += [f"\n{title}:\n", *(f"- `{name}`: {short(definition)}" for name, definition in found)]
    return "\n".join(parts) + "\n"


def _row(column: tuple[Any, ...]) -> str:
    name, kind, nullable, default, primary, unique, refers, text = column
    keys = ["primary"] * primary + ["unique"] * unique + [f"→ {refers}"] * bool(refers)
    kind = kind.replace("timestamp with time zone", "timestamptz").replace("character varying", "varchar")
    default = re.sub(r"::[a-z]+(\[\])?$", "", default) if default else ""
    cells = [f"`{name}`", kind, "null" * nullable, f"`{default}`" * bool(default), ", ".join(keys), text or ""]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |".replace("  ", " ")


def _index(definition: str) -> str:
    unique = "unique " if definition.startswith("CREATE UNIQUE") else ""
    return f"{unique}`{_plain(definition.partition(' USING ')[2].removeprefix('btree '))}`"


def _check(definition: str) -> str:
    return f"`{_plain(definition).removeprefix('CHECK ')}`"


def _plain(expression: str) -> str:
    """Return an expression of the server without casts of constants, and as one would write it."""
    expression = re.sub(
        r"('[^']*'|\)|\d|NULL)::(?:boolean|text|jsonb|interval|numeric|timestamp with time zone)\b", r"\1", expression
    )
    expression = re.sub(r"\(?(\w+) = ANY \(ARRAY\[([^\]]*)\]\)\)?", r"\1 IN (\2)", expression)
    expression = " ".join(expression.split())
    return re.sub(r"(?<=WHERE )\((.*)\)$", r"\1", expression)


def _ask(cursor: Any, query: str, *values: str) -> list[Any]:
    cursor.execute(query, values)
    found = cursor.fetchall()
    return [row[0] for row in found] if found and len(found[0]) == 1 else found


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="harvester-") as home:
        # The server's unprivileged user has to reach it.
        Path(home).chmod(0o755)
        os.environ.update(HARVESTER_HOME=home, DJANGO_SETTINGS_MODULE="harvester.settings")
        import django

        django.setup()
        from django.conf import settings
        from django.db import connections

        from harvester.engine.embedded import Cluster
        from harvester.ops.database import migrate

        with Cluster(settings.CONFIG.home, os_user=settings.CONFIG.database_os_user).hold():
            migrate()
            with connections["owner"].cursor() as cursor:
                page = markdown(cursor)
            PAGE.write_text(page)
            connections.close_all()


if __name__ == "__main__":
    main()
