"""A fourth staging table for each slot, written as SQL in the file beside this one."""

from pathlib import Path

from django.db import migrations

#: The function as it was, and then the tables.
_BACK = """
CREATE OR REPLACE FUNCTION clear_staging(slot integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public SET lock_timeout = '1s' AS $$
BEGIN
    EXECUTE format('TRUNCATE staged_rows_%s, staged_changes_%s, staged_contents_%s', slot, slot, slot);
EXCEPTION WHEN lock_not_available THEN
    EXECUTE format('DELETE FROM staged_rows_%s', slot);
    EXECUTE format('DELETE FROM staged_changes_%s', slot);
    EXECUTE format('DELETE FROM staged_contents_%s', slot);
END $$;
DO $$ BEGIN FOR slot IN 0..15 LOOP EXECUTE format('DROP TABLE staged_tokens_%s', slot); END LOOP; END $$
"""


class Migration(migrations.Migration):
    dependencies = [("catalog", "0003_drop_url_index")]

    operations = [migrations.RunSQL(Path(__file__).with_suffix(".sql").read_text(), _BACK)]
