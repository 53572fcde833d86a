"""The shape of a database: everything that migrations make, without the order of columns, owners, months and days."""

from typing import Any

_QUERIES = {
    "table": """
        SELECT c.relname, c.relkind, c.relpersistence, c.reloptions::text, pg_get_partkeydef(c.oid),
            obj_description(c.oid, 'pg_class')
        FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
    """,
    "column": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
            pg_get_expr(d.adbin, d.adrelid), o.collname, a.attstorage, col_description(c.oid, a.attnum)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation o ON o.oid = a.attcollation
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0
            AND NOT a.attisdropped
    """,
    "constraint": """
        SELECT c.relname, k.conname, pg_get_constraintdef(k.oid), k.convalidated
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
        WHERE k.connamespace = 'public'::regnamespace AND k.contype IN ('c', 'f', 'p', 'u', 'x')
    """,
    "index": """
        SELECT t.relname, c.relname, pg_get_indexdef(i.indexrelid), i.indisvalid
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
        WHERE c.relnamespace = 'public'::regnamespace
    """,
    "trigger": """
        SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
    """,
    "function": """
        SELECT p.proname, pg_get_function_identity_arguments(p.oid), CASE p.prokind
            WHEN 'a' THEN (SELECT (a.aggtransfn, a.aggtranstype::regtype, a.agginitval)::text FROM pg_aggregate a
                           WHERE a.aggfnoid = p.oid) ELSE pg_get_functiondef(p.oid) END, p.proacl::text
        FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
    """,
    "view": """
        SELECT relname, pg_get_viewdef(oid) FROM pg_class
        WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace
    """,
    "grant": """
        SELECT c.relname, g.privilege_type FROM pg_class c CROSS JOIN aclexplode(c.relacl) g
        WHERE c.relnamespace = 'public'::regnamespace AND g.grantee = 'harvester_app'::regrole
    """,
    "grant of columns": """
        SELECT c.relname, a.attname, g.privilege_type FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        CROSS JOIN aclexplode(a.attacl) g
        WHERE c.relnamespace = 'public'::regnamespace AND g.grantee = 'harvester_app'::regrole
    """,
}
_IS_MONTH_OR_DAY = "_[0-9]{6}([0-9]{2})?"


def shape(cursor: Any) -> set[tuple[str, ...]]:
    """Return a tuple of texts for each thing, so that two shapes can be compared. Months and days are left out."""
    found = set()
    for kind, query in _QUERIES.items():
        cursor.execute(f"SELECT * FROM ({query}) q WHERE (q.*)::text !~ '^\\([a-z_]*{_IS_MONTH_OR_DAY}[,_]'")
        found |= {(kind, *(str(value) for value in row)) for row in cursor.fetchall()}
    return found
