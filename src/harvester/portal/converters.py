"""Parts of addresses."""

from django.urls.converters import IntConverter


class RowConverter(IntConverter):
    """A number that the database's bigint can hold; anything longer is no address of ours."""

    regex = "[0-9]{1,18}"
