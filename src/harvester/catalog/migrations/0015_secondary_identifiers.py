"""SKUs and item ids that stand beside the identity of a product are found by an index.

Where they are the identity, the index of identities has them, and a second one would make cold runs slower.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0014_observed_corrections")]

    operations = [
        migrations.RunSQL(
            """
            CREATE INDEX source_products_sku ON source_products (source_id, sku)
                WHERE identity_type <> 3 AND sku IS NOT NULL;
            CREATE INDEX source_products_item_id ON source_products (source_id, item_id)
                WHERE identity_type <> 1 AND item_id IS NOT NULL
            """,
            "DROP INDEX source_products_sku; DROP INDEX source_products_item_id",
        ),
    ]
