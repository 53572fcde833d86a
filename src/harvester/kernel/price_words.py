"""Words that people write next to a price without changing it, and words that make it something else than one price.

Phrases are in small letters and without blanks, as `currencies.named_currencies` compares them.
"""

#: Before a price: what it is called.
LABELS = frozenset(
    """
    price ourprice yourprice saleprice specialprice currentprice onlineprice now only nowonly just sale
    preis unserpreis nur jetzt jetztnur prix notreprix precio prezzo prijs pris cena
    """.split()  # noqa: SIM905 - as a table it can be read
)
#: After a price: for one piece, tax included, footnotes. Never for a weight, a length, a pack or a month.
TRIMMINGS = frozenset(
    """
    * ! \u2020 \u2021 /- &nbsp; sale onsale only now freeshipping +freeshipping freedelivery
    each ea ea. apiece /ea /each /pc /piece /item /unit perea pereach perpiece peritem perunit
    /st /st\u00fcck /stk prost\u00fcck jest\u00fcck /unit\u00e9 /pi\u00e8ce c/u
    inclvat incvat incl.vat inc.vat includingvat includesvat vatincluded vatincl vatinc withvat
    incltax inctax incl.tax inc.tax includingtax taxincluded taxesincluded incl.taxes inclgst incgst incl.gst inc.gst
    inkl.mwst. inkl.mwst inklmwst incl.mwst inclmwst inkl.ust inkl.moms inklmoms incl.btw inclbtw ttc
    ivaincluido ivaincl ivainclusa ivainclu\u00edda i.v.a.incluido tvaincluse
    """.split()  # noqa: SIM905 - as a table it can be read
)
#: A word of these anywhere: the text does not say what this product costs.
INEXACT_WORDS = frozenset(
    """
    from starting starts start low lowest up upto upwards upward above below between under over than to more less or
    about around approx approximately circa est estimated estimate average avg min max minimum maximum
    obo ono offer offers negotiable vb vhb
    ab bis partir d\u00e8s partire da desde hasta vanaf vanafprijs od fra fr\u00e5n alk alkaen \u043e\u0442
    """.split()  # noqa: SIM905 - as a table it can be read
)
INEXACT_SIGNS = frozenset("~\u2248<>\u2264\u2265\u00b1")
