"""Parameters of links that choose a product of a feed, although elsewhere they tell where a visitor came from."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("feeds", "0004_unknown_stock")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE feeds ADD COLUMN kept_parameters jsonb NOT NULL DEFAULT '[]'",
            "ALTER TABLE feeds DROP COLUMN kept_parameters",
        )
    ]
