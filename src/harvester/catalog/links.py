"""The link that a customer's click takes."""

from collections.abc import Mapping
from typing import Any

from harvester.kernel.tracking_url import build_tracking_url


def tracking_url(row: Mapping[str, Any]) -> str:
    """The link of an offer, from a row with the fields of its product and of its source."""
    return build_tracking_url(
        template=row["tracking_template"],
        url=row["url"],
        tracked_url=row["tracked_url"],
        sku=row["sku"],
        item_id=row["item_id"],
        source=row["network_source"],
    )
