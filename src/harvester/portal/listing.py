"""Lists that stay fast at any length: paged by the last row's key, without counts and offsets."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import get_fields_from_path
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

AFTER, BEFORE = "after", "before"
#: Between the values of a cursor. No timestamp or number contains it; a text, which might, must come first.
SEPARATOR = "~"


class KeysetChangeList(ChangeList):
    """One page of a list, and the cursors of its neighbours."""

    def get_filters_params(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the filters of the pills only.

        Django accepts any column of the model, and so would reveal the hash of a password letter by letter to anyone
        who may see the list.
        """
        asked = {name for pill in self.list_filter for name in pill.parameters}
        found = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name in asked}

    def get_results(self, request: HttpRequest) -> None:
        self.keys: Sequence[str] = self.model_admin.get_page_keys(request)
        back = self.params.get(BEFORE)
        rows, more = self._read(self.params.get(AFTER) or back, backwards=bool(back))
        self.result_list = rows
        self.result_count = len(rows)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = False
        self.can_show_all = False
        self.paginator = None
        has_previous = more if back else bool(self.params.get(AFTER))
        has_next = bool(back) or more
        self.previous_page = self._link(BEFORE, rows[0]) if rows and has_previous else None
        self.next_page = self._link(AFTER, rows[-1]) if rows and has_next else None
        self.multi_page = bool(self.previous_page or self.next_page)
        self.first_page = self.get_query_string(remove=[AFTER, BEFORE])
        self.is_first_page = not (self.params.get(AFTER) or back)

    def _read(self, cursor: str | None, *, backwards: bool) -> tuple[list[Model], bool]:
        """Return the page after (or, backwards, before) the cursor, and whether there is more."""
        keys = list(self.keys)
        if backwards:
            keys = [key[1:] if key.startswith("-") else f"-{key}" for key in keys]
        rows: QuerySet[Model] = self.queryset.order_by(*keys)
        if cursor:
            rows = rows.filter(_beyond(keys, self._values(cursor)))
        found = list(rows[: self.list_per_page + 1])
        page = found[: self.list_per_page]
        return (page[::-1] if backwards else page), len(found) > len(page)

    def _values(self, cursor: str) -> list[Any]:
        # Only the first value can be a text that contains the separator.
        parts = cursor.replace("\x00", "").rsplit(SEPARATOR, len(self.keys) - 1)
        annotated = self.queryset.query.annotations
        fields = [
            annotated[key].output_field if key in annotated else get_fields_from_path(self.model, key)[-1]
            for key in (key.lstrip("-") for key in self.keys)
        ]
        try:
            return [field.to_python(part) for field, part in zip(fields, parts, strict=True)]
        except (ValidationError, ValueError) as problem:
            raise IncorrectLookupParameters(problem) from problem

    def _link(self, direction: str, row: Model) -> str:
        values = [reduce(getattr, key.lstrip("-").split("__"), row) for key in self.keys]
        cursor = SEPARATOR.join(value.isoformat() if hasattr(value, "isoformat") else str(value) for value in values)
        return self.get_query_string({direction: cursor}, remove=[AFTER, BEFORE])


def _beyond(keys: Sequence[str], values: Sequence[Any]) -> Q:
    """Return the condition for rows after these values in the order of the keys."""
    reach = Q()
    for place, (key, value) in enumerate(zip(keys, values, strict=True)):
        same = {name.lstrip("-"): known for name, known in zip(keys[:place], values[:place], strict=True)}
        reach |= Q(**same, **{f"{key.lstrip('-')}__{_comparison(key)}": value})
    # Implied by the rest, but without it the database does not start inside an index.
    return Q(**{f"{keys[0].lstrip('-')}__{_comparison(keys[0])}e": values[0]}) & reach


def _comparison(key: str) -> str:
    return "lt" if key.startswith("-") else "gt"
