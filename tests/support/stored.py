"""Everything that the database has, as text."""

from django.db import connections


def everything_stored() -> str:
    """Every row of every table. Sealed values are opaque bytes."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
            "AND NOT relispartition"
        )
        parts = []
        for (table,) in cursor.fetchall():
            cursor.execute(f'SELECT coalesce(string_agg(t::text, chr(10)), $$$$) FROM "{table}" t')
            parts.append(cursor.fetchone()[0])
    return "\n".join(parts)
