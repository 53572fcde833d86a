"""What a stock text that cannot be read means in a feed."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feeds", "0003_notices")]

    operations = [
        migrations.RunSQL(
            """
            ALTER TABLE feeds ADD COLUMN unknown_stock text COLLATE "C" NOT NULL DEFAULT 'IN_STOCK'
                CHECK (unknown_stock IN ('IN_STOCK', 'OUT_OF_STOCK', 'REJECT'))
            """,
            "ALTER TABLE feeds DROP COLUMN unknown_stock",
        )
    ]
