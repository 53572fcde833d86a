"""The forms that add and change a feed, and their pages.

The pages call verbs, all or nothing, and show what these refuse at the fields.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any, Final, NamedTuple
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import AdminSite
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.choices import BaseChoiceIterator
from django.utils.safestring import SafeString

from harvester.catalog import fields, retailers, sources
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.feeds import verbs
from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.reader import ParseLimits
from harvester.feeds.settings import THRESHOLDS, InvalidSettings, read_new_settings
from harvester.feeds.states import SCHEDULES, Compression, FeedStatus, Transport
from harvester.feeds.verbs.configuration import DEFAULT_EXPIRY_HOURS
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops.models import Role
from harvester.portal.feeds import page
from harvester.portal.feeds.labels import MEGABYTE, THRESHOLD_LABELS, UNKNOWN_STOCK
from harvester.portal.forms import Choice, Password, SecretText, Text, Tick
from harvester.portal.requests import require

THRESHOLD: Final = "threshold_"
#: The choice of a new source or retailer.
NEW: Final = ""
#: Settings whose field has the same name.
PLAIN: Final = (
    *("network", "transport", "host", "port", "path", "username", "schedule_hours", "expiry_hours"),
    *("compression", "encoding", "default_currency", "decimal_style", "unknown_stock", "use_manifest"),
    *("kept_parameters", "max_rows", "max_products"),
    *("accepts_url_identity", "unchanged_means_seen"),
)
SECRETS: Final = ("password", "private_key", "passphrase")
_ENCODINGS: Final = (
    ("", "Detect from the file"),
    ("utf-8", "UTF-8"),
    ("cp1252", "Windows-1252, ISO 8859-1"),
    ("utf-16-le", "UTF-16 LE"),
    ("utf-16-be", "UTF-16 BE"),
)
#: Cast in the database: there may be thousands of options.
_KEY: Final = Cast("pk", TextField())
#: Fields that take the whole width.
_WIDE: Final = frozenset({"private_key", "path", "accept_insecure", "replace"})
#: Fields that conditions.js shows only while other fields have these values.
_CONDITIONS: Final = {
    "source_name": "source=",
    "retailer": "source=",
    "retailer_name": "source= retailer=",
    "website": "source= retailer=",
    "accept_insecure": "transport=FTP",
    "private_key": "transport=SFTP",
    "passphrase": "transport=SFTP",
}
_WARNINGS: Final = {
    "accept_insecure": "Insecure: plain FTP sends the password and the file unencrypted. Use SFTP if the partner "
    "offers it.",
}


class _Pairs(BaseChoiceIterator):
    """Choices without groups. Django checks each of thousands for being a group."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)


class Section(NamedTuple):
    """Fields that belong together.

    Attributes:
        title: its heading.
        about: a sentence below the heading.
        names: names of its fields.
        is_folded: whether it is closed at first, because most feeds use its defaults.
    """

    title: str
    about: str
    names: tuple[str, ...]
    is_folded: bool = False


OWNER: Final = Section(
    "Retailer",
    "Offers belong to a retailer and come from a source. Each feed has its own source.",
    ("source", "source_name", "retailer", "retailer_name", "website"),
)
COMMON: Final = (
    Section(
        "File location",
        f"Networks: {', '.join(network.label for network in networks().values())}. The file is CSV with a header line. "
        "Required columns: a title, a link and a price (or sale price). The currency has its own column, is part of "
        "the price, or is the default below. A server on this machine or in a private network has to be allowed with "
        "HARVESTER_EGRESS_ALLOW.",
        ("network", "transport", "accept_insecure", "host", "port", "path"),
    ),
    Section(
        "Credentials",
        "Stored encrypted, decrypted only by workers, and never shown again.",
        ("username", "password", "private_key", "passphrase", "replace"),
    ),
    Section("Schedule", "", ("schedule_hours", "expiry_hours", "unchanged_means_seen")),
    Section(
        "File format",
        "Empty fields are detected from the file.",
        (
            *("compression", "encoding", "default_currency", "decimal_style", "unknown_stock", "kept_parameters"),
            "use_manifest",
        ),
        is_folded=True,
    ),
    Section(
        "Limits and hold rules",
        "A file over a limit fails. A run is held until someone decides if a share is exceeded and the minimum is "
        "reached, or if a maximum is exceeded. Shares are fractions: 0.3 means 30 %.",
        (
            *("max_file_mb", "max_rows", "max_products", "accepts_url_identity"),
            *(f"{THRESHOLD}{name}" for name in THRESHOLD_LABELS),
        ),
        is_folded=True,
    ),
)


def _text(label: str, hint: str = "", help_text: str = "", **attrs: Any) -> forms.CharField:
    widget = Text({"autocomplete": "off", "placeholder": hint, **attrs})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _number(label: str, hint: str = "", help_text: str = "") -> forms.CharField:
    return _text(label, hint, help_text, inputmode="decimal")


def _choice(label: str, choices: Iterable[tuple[str, str]], help_text: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=choices, required=False, help_text=help_text, widget=Choice())


def _tick(label: str, help_text: str = "") -> forms.BooleanField:
    return forms.BooleanField(label=label, required=False, help_text=help_text, widget=Tick())


class FeedForm(forms.Form):
    """Every setting of a feed, and its credentials."""

    sections: tuple[Section, ...] = COMMON

    network = _choice("Network", ())
    transport = _choice("Transport", ())
    accept_insecure = _tick("I understand that plain FTP is insecure")
    host = _text("Host", "sftp.example.com")
    port = _number("Port", "22, or 21 for FTP", "Leave empty for the standard port.")
    path = _text("Path", "/feeds/catalog.csv.gz", "The full path of one file.")
    username = _text("Username")
    password = forms.CharField(label="Password", required=False, strip=False, widget=Password("new-password"))
    private_key = forms.CharField(
        label="Private key",
        required=False,
        strip=False,
        widget=SecretText({"rows": 4, "placeholder": "-----BEGIN OPENSSH PRIVATE KEY-----"}),
        help_text="The text of the key file, if the partner uses keys.",
    )
    passphrase = forms.CharField(label="Passphrase", required=False, strip=False, widget=Password("new-password"))
    replace = _tick("Delete stored credentials that are not entered here")
    schedule_hours = _choice("Schedule", (("", "Manual"), *((str(hours), f"Every {hours} h") for hours in SCHEDULES)))
    expiry_hours = _number(
        "Offers expire after (hours)",
        str(DEFAULT_EXPIRY_HOURS),
        "1 to 168. Products not seen for this long disappear.",
    )
    unchanged_means_seen = _tick(
        "Unchanged file counts as seen", "Otherwise offers expire although the partner has nothing new."
    )
    compression = _choice(
        "Compression",
        [(word.value, word.value.capitalize()) for word in Compression],
        "Detected from the file if it differs.",
    )
    encoding = _choice("Encoding", _ENCODINGS)
    default_currency = _text("Default currency", "USD", "For rows without a currency.", maxlength=3)
    decimal_style = _choice(
        "Decimal separator",
        (("", "Detect from the file"), (".", "Point: 12.50"), (",", "Comma: 12,50")),
    )
    unknown_stock = _choice(
        "Unknown stock text",
        [(name, label.capitalize()) for name, label in UNKNOWN_STOCK.items()],
        "Meaning of an empty or unknown text. Such rows count as UNKNOWN_STOCK, and the run lists frequent texts.",
    )
    kept_parameters = _text(
        "Kept link parameters",
        "ref, source",
        "Comma-separated names. Only for shops where they select the product; in most shops they only track visitors.",
    )
    use_manifest = forms.BooleanField(
        label="Use manifest",
        required=False,
        initial=True,
        widget=Tick(),
        help_text="If the network has one, a file with a different number of rows is not imported.",
    )
    max_file_mb = _number("Maximum file size (MB)", f"{MAX_FILE_BYTES // MEGABYTE:,}")
    max_rows = _number("Maximum rows", f"{ParseLimits().rows:,}")
    max_products = _number("Maximum products", f"{ParseLimits().products:,}")
    accepts_url_identity = _tick(
        "Accept products without ID",
        "Products without ID and SKU are matched by their URL.",
    )

    def __init__(self, *args: Any, feed: Feed | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in THRESHOLD_LABELS.items():
            self.fields[THRESHOLD + name] = _number(label, f"{THRESHOLDS[name]:g}")
        known = [(name, network.label) for name, network in networks().items()]
        self._choices("network", known if feed else [("", "Choose a network"), *known])
        # Plain FTP only if the operator allows it, or if the feed already uses it.
        has_ftp = settings.CONFIG.allow_plain_ftp or (feed is not None and feed.transport == Transport.FTP)
        transports = [(Transport.SFTP.value, "SFTP"), (Transport.FTP.value, "FTP, insecure")]
        self._choices("transport", transports if has_ftp else transports[:1])
        if feed is None:
            del self.fields["replace"]
            return
        if feed.status == FeedStatus.ENABLED:
            self.fields["host"].help_text = "Pause the feed before you change the server: it has a different host key."
        for name in feed.secret_fields:
            field = self.fields[name]
            field.widget.attrs["placeholder"] = "••••••••"
            kept = f"Leave blank to keep existing {name.replace('_', ' ')}."
            field.help_text = f"{field.help_text} {kept}".strip()

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - says so above
        field.choices = _Pairs(choices)

    def shown(self) -> Iterator[tuple[Section, SafeString]]:
        """Return the sections with the HTML of their fields. A section with an error is not folded."""
        for section in self.sections:
            fields = [self[name] for name in section.names if name in self.fields]
            is_folded = section.is_folded and not any(field.errors for field in fields)
            yield section._replace(is_folded=is_folded), SafeString("".join(_field_html(field) for field in fields))


def _field_html(field: BoundField) -> str:
    """Return a field. A form has some forty of them, and a template for each takes three times as long."""
    name, label, text = field.name, escape(str(field.label)), escape(str(field.help_text))
    classes = f"hv-field{' hv-wrong' if field.errors else ''}{' hv-broad' if name in _WIDE else ''}"
    condition = f' data-when="{_CONDITIONS[name]}"' if name in _CONDITIONS else ""
    parts = [f'<div class="{classes}"{condition}>']
    if name in _WARNINGS:
        parts.append(f'<p class="hv-message hv-warning">{_WARNINGS[name]}</p>')
    if isinstance(field.field.widget, Tick):
        parts.append(f'<label class="hv-check" for="{field.id_for_label}">{field} {label}</label>')
    else:
        parts.append(f'<label for="{field.id_for_label}">{label}</label>{field}')
    if text:
        parts.append(f'<p class="hv-help" id="{field.auto_id}_helptext">{text}</p>')
    for number, error in enumerate(field.errors):
        # The widget's aria-describedby names the first of them.
        identified = "" if number else f' id="{field.auto_id}_error"'
        parts.append(f'<p class="hv-field-error" role="alert"{identified}>{escape(str(error))}</p>')
    return "".join([*parts, "</div>"])


class NewFeedForm(FeedForm):
    """The form of a new feed, which also chooses or creates its source and retailer."""

    sections = (OWNER, *COMMON)

    source = _choice("Source", (), "Existing sources without a feed.")
    source_name = _text("Source name", "Acme by Impact", "Also the name of the feed.")
    retailer = _choice("Retailer", ())
    retailer_name = _text("Retailer name", "Acme")
    website = _text("Website", "https://acme.example")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        free = Source.objects.filter(kind=SourceKind.AFFILIATE_FEED, feed__isnull=True).order_by("name")
        sources = free.annotate(key=_KEY).values_list("key", "name", "retailer__name")
        self._choices("source", [(NEW, "New source"), *((key, f"{name} ({owner})") for key, name, owner in sources)])
        retailers = Retailer.objects.order_by("name", "pk").annotate(key=_KEY).values_list("key", "name", "domain")
        known = ((key, f"{name} ({domain})" if domain else name) for key, name, domain in retailers)
        self._choices("retailer", [(NEW, "New retailer"), *known])


def initial_of(feed: Feed) -> dict[str, Any]:
    """Return the settings as text for the form, without credentials, which the portal cannot decrypt."""
    plain = {name: getattr(feed, name) for name in PLAIN if name != "expiry_hours"}
    typed = {
        name: value if isinstance(value, bool) else "" if value is None else str(value) for name, value in plain.items()
    }
    typed["kept_parameters"] = ", ".join(feed.kept_parameters)
    numbers = {f"{THRESHOLD}{name}": f"{number:g}" for name, number in feed.thresholds.items()}
    size = f"{feed.max_file_bytes / MEGABYTE:.10g}" if feed.max_file_bytes else ""
    return {**typed, **numbers, "max_file_mb": size, "expiry_hours": str(feed.source.expiry_hours or "")}


_THRESHOLD: Final = re.compile(r"thresholds\.(\w+)")
#: The message of the verb names a command-line option instead of this checkbox.
_MESSAGES: Final = {"accept_insecure": "Check this box to use plain FTP, or choose SFTP."}
_WHOLE: Final = re.compile(r"[0-9]{1,12}")


class Refused(Exception):
    """A value that cannot be used.

    Attributes:
        problems: field, or None for the whole form -> what is wrong.
    """

    def __init__(self, problems: Mapping[str | None, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


def add(site: AdminSite, request: HttpRequest) -> HttpResponse:
    actor = require(request, Role.ADMIN)
    form = NewFeedForm(request.POST or None)
    feed = _saved(request, form, lambda: _save_new(actor, form))
    if feed is not None:
        messages.success(request, f"{feed} was added as a draft. Enable it to run it.")
        return redirect("admin:feeds_feed_change", feed.pk)
    context = {"title": "Add feed", "submit": "Save draft", "back": reverse("admin:feeds_feed_changelist")}
    return _page(site, request, form, context)


def edit(site: AdminSite, request: HttpRequest, feed_id: UUID) -> HttpResponse:
    actor, feed = require(request, Role.ADMIN), page.find(feed_id)
    form = FeedForm(request.POST or None, feed=feed, initial=initial_of(feed))
    if _saved(request, form, lambda: _save_changes(actor, feed, form)) is not None:
        messages.success(request, f"{feed} was saved.")
        return redirect("admin:feeds_feed_change", feed.pk)
    back = reverse("admin:feeds_feed_change", args=[feed.pk])
    return _page(site, request, form, {"title": "Edit", "submit": "Save", "feed": feed, "back": back})


def _saved(request: HttpRequest, form: FeedForm, save: Callable[[], Feed]) -> Feed | None:
    """Return the saved feed, or None with the errors in the form."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return save()
    except Refused as refused:
        for name, message in refused.problems.items():
            form.add_error(name if name in form.fields else None, message)
    return None


def _page(site: AdminSite, request: HttpRequest, form: FeedForm, context: dict[str, Any]) -> HttpResponse:
    lost = form.is_bound and any(form.data.get(name) for name in SECRETS)
    shell = {**site.each_context(request), "form": form, "sections": form.shown(), "secrets_lost": lost}
    return TemplateResponse(request, "portal/feeds/form.html", {**shell, **context})


def _save_new(actor: Actor, form: FeedForm) -> Feed:
    """Create the feed, and its source and retailer if they are new; none of it if anything is refused."""
    given = form.cleaned_data
    # Empty fields keep their defaults.
    settings = _settings(given, [name for name, value in given.items() if value != ""])
    problems = _problems(settings, given)
    with transaction.atomic():
        try:
            source_id = UUID(given["source"]) if given["source"] else _new_source(actor, given)
        except Refused as refused:
            raise Refused(problems | refused.problems) from None
        if problems:
            raise Refused(problems)
        with _refusals_at({"": "source"}):
            feed = verbs.create(actor, source_id, settings, accept_insecure=given["accept_insecure"])
        return _save_credentials(actor, feed, given)


def _save_changes(actor: Actor, feed: Feed, form: FeedForm) -> Feed:
    """Change the fields that were edited, so that changes by other users meanwhile stay."""
    given = form.cleaned_data
    with transaction.atomic():
        changes = _settings(given, form.changed_data)
        if changes:
            with _refusals_at({"expiry_hours": "expiry_hours"}):
                feed = verbs.update(actor, feed.pk, changes, accept_insecure=given["accept_insecure"])
        return _save_credentials(actor, feed, given)


def _problems(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str | None, str]:
    """Return everything that is wrong with settings and new names at once; the verbs stop at the first."""
    names = {"source_name": (sources.CHECKS, "name")} if not given["source"] else {}
    if not given["source"] and not given["retailer"]:
        names |= {"retailer_name": (retailers.CHECKS, "name"), "website": (retailers.CHECKS, "website")}
    problems: dict[str | None, str] = {}
    try:
        with _refusals_at({}):
            read_new_settings(settings)
    except Refused as refused:
        problems |= refused.problems
    for field, (checks, name) in names.items():
        try:
            with _refusals_at({name: field}):
                fields.checked(checks, {name: given[field]})
        except Refused as refused:
            problems |= refused.problems
    return problems


def _new_source(actor: Actor, given: Mapping[str, Any]) -> UUID:
    if given["retailer"]:
        retailer_id = UUID(given["retailer"])
    else:
        with _refusals_at({"name": "retailer_name", "website": "website"}):
            retailer_id = retailers.create(actor, name=given["retailer_name"], website=given["website"]).pk
    with _refusals_at({"name": "source_name", "": "retailer"}):
        created = sources.create(
            actor,
            retailer_id,
            name=given["source_name"],
            kind=SourceKind.AFFILIATE_FEED,
            affiliate_network=given["network"],
        )
    return created.pk


def _save_credentials(actor: Actor, feed: Feed, given: Mapping[str, Any]) -> Feed:
    entered = {name: given[name] for name in SECRETS}
    replace = bool(given.get("replace"))
    if not replace and not any(entered.values()):
        return feed
    at = "private_key" if entered["private_key"] else "password" if entered["password"] else "passphrase"
    with _refusals_at({"password": "password", "": at}):
        return verbs.change_credentials(actor, feed.pk, replace=replace, **entered)


def _settings(given: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Return the settings in these fields."""
    settings = {name: given[name] for name in names if name in PLAIN}
    if "max_file_mb" in names:
        size = given["max_file_mb"]
        # Anything but a number is passed on: the verb says what is wrong with it.
        settings["max_file_bytes"] = int(size) * MEGABYTE if _WHOLE.fullmatch(size) else size
    thresholds = {name.removeprefix(THRESHOLD): given[name] for name in names if name.startswith(THRESHOLD)}
    return {**settings, "thresholds": thresholds} if thresholds else settings


@contextmanager
def _refusals_at(fields: Mapping[str, str]) -> Iterator[None]:
    """Turn a verb's refusal into `Refused` with the field of the form.

    Args:
        fields: field of a verb -> field of the form; the empty string stands for all others.
    """
    try:
        yield
    except InvalidSettings as problem:
        problems: dict[str | None, str]
        problems = {_field(name, text): _MESSAGES.get(name, text) for name, text in problem.problems.items()}
        raise Refused(problems) from None
    except (InvalidInput, Conflict, NotFound) as problem:
        named = problem.field if problem.field and problem.field in fields else ""
        text = problem.reason if named else str(problem)
        raise Refused({fields.get(named): text[:1].upper() + text[1:]}) from None


def _field(setting: str, message: str) -> str:
    """Return the field of a setting; for a threshold, the message names it."""
    if setting == "max_file_bytes":
        return "max_file_mb"
    named = _THRESHOLD.match(message) if setting == "thresholds" else None
    return f"{THRESHOLD}{named[1]}" if named else setting
