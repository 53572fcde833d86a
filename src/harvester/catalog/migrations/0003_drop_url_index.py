"""Nobody looks for products by the hash of their address alone; to keep it findable cost a tenth of every cold run."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0002_run_differences")]

    operations = [
        migrations.RunSQL(
            "DROP INDEX source_products_url",
            "CREATE INDEX source_products_url ON source_products (source_id, url_hash) WHERE identity_type < 4",
        ),
    ]
