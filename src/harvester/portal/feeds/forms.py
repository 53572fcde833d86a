"""The form of a feed: what is asked, in which order, and in which words. Verbs check what was typed."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from django import forms
from django.conf import settings
from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils.choices import BaseChoiceIterator
from django.utils.safestring import SafeString

from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.feeds.fetch import MAX_FILE_BYTES
from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.reader import ParseLimits
from harvester.feeds.settings import THRESHOLDS
from harvester.feeds.states import SCHEDULES, Compression, FeedStatus, Transport
from harvester.feeds.verbs.configuration import DEFAULT_EXPIRY_HOURS
from harvester.portal.feeds.facts import MEGABYTE, THRESHOLD_WORDS, UNKNOWN_STOCK_WORDS
from harvester.portal.feeds.form_layout import drawn
from harvester.portal.forms import Choice, Password, SecretText, Text, Tick

THRESHOLD: Final = "threshold_"
KEPT: Final = "Leave blank to keep existing password."
MASK: Final = "••••••••"
NEW: Final = ""
#: Settings that the form has under their own names.
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


#: As text from the database: there may be thousands of options.
_KEY: Final = Cast("pk", TextField())


class _Known(BaseChoiceIterator):
    """Choices that are pairs already; Django would look at each of thousands whether it is a group."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._pairs)


class Section(NamedTuple):
    """Fields that belong together.

    Attributes:
        title: its heading.
        about: a sentence.
        names: of its fields.
        is_folded: most people leave it as it is.
    """

    title: str
    about: str
    names: tuple[str, ...]
    is_folded: bool = False


WHOSE: Final = Section(
    "Retailer",
    "Offers belong to a retailer and arrive through a source. A feed fills one source.",
    ("source", "source_name", "retailer", "retailer_name", "website"),
)
COMMON: Final = (
    Section(
        "File location",
        f"Networks: {', '.join(network.label for network in networks().values())}. The file is CSV with a header line; "
        "it needs a title, a link and a price (or sale price), and a currency: in its own column, with the price, or "
        "as the default below. A server on this machine or in a private network has to be allowed with "
        "HARVESTER_EGRESS_ALLOW.",
        ("network", "transport", "accept_insecure", "host", "port", "path"),
    ),
    Section(
        "Credentials",
        "Sealed when they are saved, opened by workers only, and never shown again.",
        ("username", "password", "private_key", "passphrase", "replace"),
    ),
    Section("Schedule", "", ("schedule_hours", "expiry_hours", "unchanged_means_seen")),
    Section(
        "How the file is read",
        "Detected from the file where nothing is set.",
        (
            *("compression", "encoding", "default_currency", "decimal_style", "unknown_stock", "kept_parameters"),
            "use_manifest",
        ),
        is_folded=True,
    ),
    Section(
        "Limits and checks",
        "A file beyond a limit fails. A run beyond a threshold is held until someone decides. Shares are fractions: "
        "0.3 means 30 %.",
        (
            *("max_file_mb", "max_rows", "max_products", "accepts_url_identity"),
            *(f"{THRESHOLD}{name}" for name in THRESHOLD_WORDS),
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
    port = _number("Port", "22, or 21 for FTP", "Only if it is not the standard port.")
    path = _text("Path", "/feeds/catalog.csv.gz", "The full path of one file.")
    username = _text("User name")
    password = forms.CharField(label="Password", required=False, strip=False, widget=Password("new-password"))
    private_key = forms.CharField(
        label="Private key",
        required=False,
        strip=False,
        widget=SecretText({"rows": 4, "placeholder": "-----BEGIN OPENSSH PRIVATE KEY-----"}),
        help_text="The text of the key file, if the partner uses keys. SFTP only.",
    )
    passphrase = forms.CharField(
        label="Passphrase of the private key", required=False, strip=False, widget=Password("new-password")
    )
    replace = _tick("Delete stored secrets that are not entered now")
    schedule_hours = _choice("Runs", (("", "Manual"), *((str(hours), f"Every {hours} h") for hours in SCHEDULES)))
    expiry_hours = _number(
        "Offers expire after (hours)",
        str(DEFAULT_EXPIRY_HOURS),
        "1 to 168. Products that no run has seen for this long disappear.",
    )
    unchanged_means_seen = _tick(
        "An unchanged file counts as seen", "Otherwise its products expire although the partner has nothing new."
    )
    compression = _choice(
        "Compression", [(word.value, word.value.capitalize()) for word in Compression], "Its first bytes decide."
    )
    encoding = _choice("Encoding", _ENCODINGS)
    default_currency = _text("Default currency", "USD", "For files whose rows name none.", maxlength=3)
    decimal_style = _choice(
        "Decimal separator",
        (("", "Detect from the file"), (".", "A point: 12.50"), (",", "A comma: 12,50")),
    )
    unknown_stock = _choice(
        "A stock text that is empty or not understood means",
        [(word, words.capitalize()) for word, words in UNKNOWN_STOCK_WORDS.items()],
        "Each such row is counted as UNKNOWN_STOCK, and the run lists the texts if there are many.",
    )
    kept_parameters = _text(
        "Link parameters to keep",
        "ref, source",
        "Names with commas between them. In this shop they select the product; in most shops they only say where a "
        "visitor came from.",
    )
    use_manifest = forms.BooleanField(
        label="Compare with the network's manifest",
        required=False,
        initial=True,
        widget=Tick(),
        help_text="If the network has one, a file with a different number of rows is not imported.",
    )
    max_file_mb = _number("Largest file (MB)", f"{MAX_FILE_BYTES // MEGABYTE:,}")
    max_rows = _number("Most rows", f"{ParseLimits().rows:,}")
    max_products = _number("Most products", f"{ParseLimits().products:,}")
    accepts_url_identity = _tick(
        "Accept products without ID or SKU",
        "They are matched by their URL. For partners whose files have neither IDs nor SKUs.",
    )

    def __init__(self, *args: Any, feed: Feed | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, label in THRESHOLD_WORDS.items():
            self.fields[THRESHOLD + name] = _number(label, f"{THRESHOLDS[name]:g}")
        known = [(name, network.label) for name, network in networks().items()]
        self._choices("network", known if feed else [("", "Choose a network"), *known])
        self._choices("transport", _transports(feed))
        if feed is None:
            del self.fields["replace"]
        else:
            self._tell_what_is_stored(feed)

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - says so above
        field.choices = _Known(choices)

    def _tell_what_is_stored(self, feed: Feed) -> None:
        if feed.status == FeedStatus.ENABLED:
            self.fields["host"].help_text = "To change the server, pause the feed first: it has a different host key."
        for name in feed.secret_fields:
            field = self.fields[name]
            field.widget.attrs["placeholder"] = MASK
            kept = KEPT if name == "password" else f"Leave blank to keep the existing {name.replace('_', ' ')}."
            field.help_text = f"{field.help_text} {kept}".strip()

    def shown(self) -> Iterator[tuple[Section, SafeString]]:
        """The sections with their fields, drawn; one with an error in it is not folded."""
        for section in self.sections:
            fields = [self[name] for name in section.names if name in self.fields]
            is_folded = section.is_folded and not any(field.errors for field in fields)
            yield section._replace(is_folded=is_folded), drawn(fields)


def _transports(feed: Feed | None) -> list[tuple[str, str]]:
    """Plain FTP only where the operator allows it, or where a feed has it already."""
    has_ftp = feed is not None and feed.transport == Transport.FTP
    offered = [word for word in Transport if word is not Transport.FTP or has_ftp or settings.CONFIG.allow_plain_ftp]
    words = {Transport.SFTP: "SFTP", Transport.FTP: "FTP, insecure"}
    return [(word.value, words[word]) for word in offered]


class NewFeedForm(FeedForm):
    """The same, and before it whose catalog it is."""

    sections = (WHOSE, *COMMON)

    source = _choice("Source", (), "Sources for affiliate feeds that have no feed yet.")
    source_name = _text("Name of the new source", "Acme by Impact", "The feed goes by this name.")
    retailer = _choice("Retailer", ())
    retailer_name = _text("Name of the new retailer", "Acme")
    website = _text("Website of the new retailer", "https://acme.example")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choices("source", [(NEW, "A new source"), *_free_sources()])
        self._choices("retailer", [(NEW, "A new retailer"), *_known_retailers()])


def _free_sources() -> Iterator[tuple[str, str]]:
    free = Source.objects.filter(kind=SourceKind.AFFILIATE_FEED, feed__isnull=True).order_by("name")
    for key, name, retailer in free.annotate(key=_KEY).values_list("key", "name", "retailer__name"):
        yield key, f"{name} ({retailer})"


def _known_retailers() -> Iterator[tuple[str, str]]:
    known = Retailer.objects.order_by("name", "pk").annotate(key=_KEY)
    for key, name, domain in known.values_list("key", "name", "domain"):
        yield key, f"{name} ({domain})" if domain else name


def initial_of(feed: Feed) -> dict[str, Any]:
    """The settings as they would be typed. Secrets are not among them: nobody here can open them."""
    plain = {name: getattr(feed, name) for name in PLAIN if name != "expiry_hours"}
    typed = {
        name: value if isinstance(value, bool) else "" if value is None else str(value) for name, value in plain.items()
    }
    typed["kept_parameters"] = ", ".join(feed.kept_parameters)
    numbers = {f"{THRESHOLD}{name}": f"{number:g}" for name, number in feed.thresholds.items()}
    size = f"{feed.max_file_bytes / MEGABYTE:.10g}" if feed.max_file_bytes else ""
    return {**typed, **numbers, "max_file_mb": size, "expiry_hours": str(feed.source.expiry_hours or "")}
