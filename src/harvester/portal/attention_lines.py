"""One line of what needs somebody, as it stands on the dashboard."""

from dataclasses import dataclass
from datetime import datetime
from html import escape

from django.utils.safestring import SafeString

from harvester.portal.display import badge, when


@dataclass(frozen=True, kw_only=True)
class Line:
    """What needs somebody.

    Attributes:
        word: the badge.
        title: of which thing.
        reason: why.
        link: where to look, if there is such a page.
        happens: what happened or will happen at `at`.
    """

    word: str
    title: str
    reason: str
    link: str | None
    happens: str
    at: datetime | None


def drawn(line: Line) -> SafeString:
    """There are dozens of them, and a template for each is half of what the page takes."""
    at = f'<span class="hv-need-at">{escape(line.happens)} {when(line.at)}</span>' if line.at else ""
    inner = (
        f'<span class="hv-need-badge">{badge(line.word)}</span><span class="hv-need-main"><strong>{escape(line.title)}'
        f'</strong><span class="hv-need-why">{escape(line.reason)}</span></span>{at}'
    )
    if line.link is None:
        return SafeString(f'<li><div class="hv-need">{inner}</div></li>')
    return SafeString(f'<li><a class="hv-need" href="{escape(line.link)}">{inner}</a></li>')
