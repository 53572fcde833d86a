r"""What counts as blank and what counts as a control character, the same for every field.

Patterns in this layer are read by two engines, Python's and the one behind the columnar pipeline. So none is
anchored (they are matched whole), none looks around, and none says \d, \s or \w, which the two understand differently.
"""

import html
import re

#: The blanks of a line, as they are seen between two words.
SPACES = " \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
#: Those, the ends of lines, and the two marks of no width that copying out of web pages leaves behind.
BLANKS = SPACES + "\t\n\v\f\r\x85\u2028\u2029\u200b\ufeff"
#: C0, DEL, C1, the line separators, and the marks that turn the direction of what follows.
CONTROLS = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
HYPHENS = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
#: What machines write where there is no value.
WORDS_FOR_NOTHING = frozenset({"#n/a", "n/a", "nan", "none", "null", "undefined"})

#: Characters of a reason that a person gives, everywhere: forms, commands, API and database.
LONGEST_REASON = 1_000


def trim(text: str | None) -> str:
    """The text without blanks at its ends; nothing is the empty text."""
    return (text or "").strip(BLANKS)


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8: half a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: Tags and comments of HTML; a lone `<`, as in "a < b", is not one.
_MARKUP = re.compile(r"<!--.*?-->|</?[a-zA-Z][^<>]*>", re.DOTALL)


def without_markup(text: str) -> str:
    """Return a text as people read it: HTML tags and entities resolved, blanks collapsed."""
    return " ".join(html.unescape(_MARKUP.sub(" ", html.unescape(text))).split())
