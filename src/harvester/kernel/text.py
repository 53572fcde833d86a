r"""Blanks and control characters, the same for all fields.

Patterns in this layer are used by two engines, Python's and that of the columnar pipeline. So none is anchored (they
are matched whole), none looks around, and none contains \d, \s or \w, whose meanings differ.
"""

import html
import re

#: Blanks within a line.
SPACES = " \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
#: Those, line breaks, and the two zero-width characters that text copied from web pages contains.
BLANKS = SPACES + "\t\n\v\f\r\x85\u2028\u2029\u200b\ufeff"
#: C0, DEL, C1, the line separators, and the characters that change the text direction.
CONTROLS = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
HYPHENS = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
#: Placeholders that programs write for a missing value.
WORDS_FOR_NOTHING = frozenset({"#n/a", "n/a", "nan", "none", "null", "undefined"})

#: Characters of a reason that a person gives, everywhere: forms, commands, API and database.
LONGEST_REASON = 1_000


def trim(text: str | None) -> str:
    """Return the text without blanks at its ends; none becomes the empty text."""
    return (text or "").strip(BLANKS)


def is_encodable(text: str) -> bool:
    """Whether the text can be encoded as UTF-8: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: HTML tags and comments; a lone `<`, as in "a < b", is neither.
_MARKUP = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]*>", re.DOTALL)


def without_markup(text: str) -> str:
    """Return a text as people read it: HTML tags and entities resolved, blanks collapsed."""
    return " ".join(html.unescape(_MARKUP.sub(" ", html.unescape(text))).split())
