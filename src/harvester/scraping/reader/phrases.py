"""Words of shop pages in the main European languages. Patterns match text in lower case."""

import re
from typing import Final


def _words(text: str, *, before: str = r"(?<!\w)", after: str = r"(?!\w)") -> re.Pattern[str]:
    return re.compile(before + "(?:" + "|".join(text.split("\n")) + ")" + after)


def lines(text: str) -> str:
    """Return the pattern of any of the lines."""
    return "|".join(line.strip() for line in text.strip().splitlines())


#: Headings above other products.
OTHERS: Final = re.compile(
    lines(r"""
    ^related\b
    ^similar\s
    you\s(?:may|might|will|'ll|could)\s(?:also\s)?(?:like|love|enjoy|need|be\sinterested)
    ^(?:customers|people|others|shoppers)\s(?:who|also)
    also\s(?:bought|viewed|like|purchased)
    ^recently\sviewed
    ^(?:recommended|more)\s(?:for\syou|products|from|like\sthis|items)
    ^(?:our\s)?(?:recommendations|best\s?sellers|featured|new\sarrivals|accessories|top\ssellers)
    frequently\sbought
    ^(?:complete|finish)\s(?:the|your)\s
    ^pairs\swell
    ^compare\s(?:with|similar)
    ^customers\s
    ähnliche\s(?:artikel|produkte)
    kunden\s(?:kauften|haben|sahen)
    (?:das\skönnte|könnte\sihnen|auch\sgefallen|zubehör|zuletzt\sangesehen|wird\soft\szusammen)
    produits\s(?:similaires|associés|apparentés|complémentaires)
    vous\saimerez|dans\sla\smême\scatégorie|vus\srécemment
    productos\s(?:relacionados|similares)
    también\ste\s|te\spuede\s|otros\sproductos
    prodotti\s(?:correlati|simili)
    potrebbe\s(?:interessarti|piacerti)|altri\sprodotti|visti\sdi\srecente
    gerelateerde|vergelijkbare|anderen\skochten|ook\sinteressant|misschien\svind
    produkty\s(?:powiązane|podobne)|zobacz\srównież|inni\sklienci|ostatnio\soglądane
    produtos\srelacionados|também\spode
    relaterade|liknande\sprodukter|andra\sköpte
    relaterede|lignende\sprodukter|andre\skøbte
    související|podobné\sprodukty|mohlo\sby
    """)
)
#: The price itself is not shown.
PRICE_WITHHELD: Final = re.compile(
    r"(?:see|view|shown?|displayed|lower|final|our)\s(?:the\s|our\s)?price\s(?:is\s)?in\s(?:your\s)?cart|"
    r"price\s(?:is\s)?too\slow\sto\s(?:show|display)|(?:to|for)\s(?:see|view|reveal|unlock)\s(?:the\s|our\s|your\s)(?:\w+\s){0,2}price|"
    r"(?:remaining|outstanding)\sbalance|(?<!new\s)balance\s(?:due|before)\b|deposit\s(?:now|only|required|today)|\b(?:place|enter|submit)\s(?:a\s|your\s)?bid\b|add\s(?:it\s|item\s)?to\s(?:your\s)?(?:cart|basket|bag)\s(?:to\s|for\s)"
    r"(?:see\s|the\s|our\s|best\s|lowest\s|final\s)*price|"
    r"(?:log|sign)\s?in\s(?:to\s(?:see|view)|for)\s(?:\w+\s)?pric|(?:call|contact\sus|email)\sfor\s(?:\w+\s)?pric|"
    r"price\s(?:up)?on\srequest|preis\sauf\sanfrage|prix\ssur\sdemande|(?:anmelden|einloggen),?\sum\s(?:den\s)?preis"
)

# The words before and after an amount that say what it is.
WAS: Final = _words(
    r"""was|were|orig\.?|prior(?:\sprice)?|(?:catalog(?:ue)?|sticker|ticket|tag|typical|market|reference)\sprice|elsewhere|other\sstores?
manufacturer\S*(?:\s\w+)?\sprice|m\.?s\.?r\.?p\.?|r\.?r\.?p\.?|s\.?r\.?p\.?|list(?:\sprice)?|retail(?:\sprice)?|original(?:ly)?(?:\sprice)?
old\sprice|before|compare[sd]?(?:\sat|\sto)?|typically|usually|instead\sof|previous(?:ly)?(?:\sprice)?|reg\.?(?:\sprice)?
street\sprice|suggested|uvp|statt|bisher(?:iger)?|vorher(?:iger)?|ehem\w*|alter\spreis|listenpreis|ursprünglich\w*
prix\s(?:conseillé|public|initial|barré|habituel|d'origine|de\sbase)|au\slieu\sde|avant|antes|antiguo
precio\s(?:anterior|original|recomendado)|pvpr|p\.?v\.?p\.?r|prezzo\s(?:di\slistino|originale|precedente|pieno)
invece\sdi|prima|anziché|listino|adviesprijs|van|oude\sprijs|normale\sprijs
cena\s(?:regularna|katalogowa|poprzednia|przed)|preço\s(?:original|anterior)|ord(?:inarie)?\.?\s?pris|tidigare|rek\.?
førpris|før|vejl\.?|normalpris|původní|běžná|dříve|doporučená|il\sprezzo\soriginale|der\sursprüngliche|el\sprecio\soriginal
le\sprix\sinitial|pierwotna|oorspronkelijke|recomendad[oa]|consigliat[oa]|(?:prix\s(?:\w+\s){0,3})?conseillé|unverb\w*\.?(?:\s\w+\.?)?
empf\.?|empfohlene\w*|sugerowana|stara\scena|ovh\.?|veil(?:edende|\.)(?:\spris)?|ancien\sprix|früher\w*|aanbevolen|rekommenderat|anbefalet"""
)
#: What many shops write above the only price, and others above the former one.
REGULAR: Final = _words(
    r"""regular(?:\sprice)?|normal\sprice|normaler\spreis|prix\s(?:normal|régulier)|precio\shabitual
prezzo\sregolare|cena\sregularna|preço\snormal|regulärer\spreis|standard\sprice"""
)
CURRENT: Final = _words(
    r"""now|current(?:\sprice)?|new\sprice|neuer\spreis|nouveau\sprix|sale(?:\sprice)?|our\sprice|your\sprice|today|special(?:\sprice)?|jetzt|nur|aktueller|angebotspreis
maintenant|prix\sactuel|ahora|precio\sactual|adesso|ora|attuale|nu|voor|teraz|aktualna|agora|nuvarande|deal\sprice"""
)
#: Right after an amount, at the end of its text.
WAS_AFTER: Final = re.compile(
    r"^[\s*]*[(\[]?\s*(?:was\b|m\.?s\.?r\.?p\b|r\.?r\.?p\b|uvp\b|list(?:\sprice)?\b|retail\b(?!\ssale)|reg\b|suggested\b)"
)
FROM_AFTER: Final = re.compile(r"^\+(?!\s?\w)|^\s*(?:and|&)\sup\b|^\s*\(?starting\b")
SAVING: Final = _words(
    r"""sav(?:e|es|ing|ings)|you\ssave|off|discount(?:\sof)?|rebate|rabatt|sie\ssparen|spar(?:en|e)?|ersparnis|économi\w+
remise|ahorr\w+|descuento|risparmi\w*|sconto|bespaar\w*|korting|oszczęd\w*|rabat|poup\w+|desconto|spara|ušetří\w*|sleva"""
)
#: The amount after it is what has to be paid now, although the words around say "save", "discount", or "total".
NET: Final = re.compile(
    r"(?:"
    + lines(r"""
    (?:after|with|incl\w*\.?|less)\s(?:\w+\s){0,2}(?:savings?|discounts?|markdowns?|instant\srebates?|price\sdrop)
    (?:promo(?:tion(?:al)?)?|discount(?:ed)?|savings?|sale|clearance|closeout|markdown)\sprice(?:\s(?:after|with)\s\w+)?
    price\s(?:after|with|in)\s(?:your\s|the\s)?(?:\w+\s)?(?:cart|basket|bag|discount|savings?|markdown)
    you\spay(?:\s(?:only|just))?
    your\s(?:cost|price|total)
    lowest\sprice\sever
    """)
    + r")(?:\s(?:is|now|today|only))?\s*[:=\-\u2013]?\s*$"
)
#: Lowest price of 30 days, by law next to an offer in the European Union.
LOWEST_LATELY: Final = re.compile(
    r"(?:30|thirty|dreißig)[\s-](?:days?|tage\w*|jours|días|giorni|dagen|dni|dagar|dage|dnů|dní)|lowest\sprice|"
    r"niedrigster|najniższa|prix\sle\splus\sbas|prezzo\spiù\sbasso|precio\smás\sbajo|laagste\sprijs|nejnižší"
)
PER_UNIT: Final = re.compile(
    r"^[\s*]*[(\[]?\s*/\s*\d+\s*$|"
    r"^[\s*]*[(\[]?\s*(?:/|per\b|pro\b|par\b|je\b|por\b|al\b|za\b|a(?=\sround)|le\b|por\b)\s*\d*[.,]?\d*\s*"
    r"(?:rounds?|rds?|rnds?|shots?|shells?|cartridges?|bullets?|count|ct|load|wash|use|serving|sheet|dose|tablet|capsule|"
    r"k?g|gr|grams?|gramm|kilo(?:gramm?)?|mg|m?l|cl|lit(?:er|re)s?|litro|lt|m|cm|mm|m²|m2|meter|metre|mètre|ft|foot|"
    r"feet|sq\.?|yd|yard|in|oz|ounces?|lbs?|pounds?|gal(?:lon)?|qt|schuss|patronen?|blatt|rolle|szt|coup|cartouche|"
    r"hours?|hr|days?|nights?|weekend|person|guest|tag|nacht|stunde|jour|nuit|día|giorno|dag)\b"
)
PER_UNIT_BEFORE: Final = re.compile(
    r"(?:cost|price|cents?)\s(?:per|/)\s?(?:round|rd|unit|shot|count|oz|lb|kg|100)|\bcpr\b|\bppr\b|\bppu\b|unit\sprice|"
    r"grundpreis|prix\s(?:au|à\sl'|unitaire)|precio\s(?:por|unitario)|prezzo\s(?:al|unitario)|€\s?/\s?(?:kg|l|100)|"
    r"cena\sjednostkowa|stückpreis|jämförpris|enhedspris|\d\s?(?:kg|g|ml|l|m|oz|lb)\s?="
)
#: One of the things in a pack, or one pack.
PER_PIECE: Final = re.compile(
    r"^[\s*]*[(\[]?\s*(?:/|per\b|pro\b|par\b|je\b|por\b|al\b)\s*(?:piece|pc|unit|item|each|ea|stück|stk|st|unité|pièce|pezzo|"
    r"unidad|stuk|sztuk\w*|styck|ks|box|pack|case)\b"
)
INSTALLMENT_BEFORE: Final = re.compile(
    r"\d\s?(?:x|\u00d7|(?:interest|equal|easy|monthly|weekly|bi-?weekly|fortnightly)\b.{0,30}|payments?|instal\w+|raten|rates|fois|"
    r"cuotas|rate|termijnen|rat)\s?(?:of|à|von|zu|de|da|van|po|at)?\s?$|"
    r"instal?lments?|payments?\s(?:of|from|as\slow)|monatlich|mensual\w*|mensil\w*|per\smonth|pay\s(?:as\slow|over|in)|"
    r"afterpay|klarna|affirm|sezzle|zip\b|zippay|laybuy|clearpay|shop\s?pay|financ|finanzier|\bapr\b|raty|ratenzahlung|credova|"
    r"paypal|splitit|bread\spay"
)
INSTALLMENT_AFTER: Final = re.compile(
    r"^[\s*]*[(\[]?\s*(?:(?:/|per\b|a\b|pro\b|par\b|al\b|por\b)\s?(?:mo(?:nth)?|monat|mois|mes|mese|maand|mies|wk|week|year|yr|"
    r"jahr|an|fortnight|mån(?:ad)?|måned|md|měs(?:íc)?)\b|x\s?\d|(?:monthly|weekly|every)\b(?!\s(?:special|deal|ad|offer|price))|(?:miesięcznie|měsíčně|månedlig)\b|mtl\b|in\s\d+\s(?:inter|pay|inst)|with\s(?:afterpay|klarna|affirm|"
    r"sezzle|shop\spay))"
)
SHIPPING: Final = re.compile(
    r"shipping|deliver|versand|liefer|livraison|envío|gastos|spedizione|consegna|verzend|bezorg|wysyłk|dostaw|frakt|fragt|"
    r"doprav|postage|freight|frete|envio\sgr|szállítás|toimitus|livrare|доставк|kargo|送料|배송|משלוח|orders?\s(?:over|above|of|from)|bestell\w+\s(?:ab|über)|spend\b|(?:over|above|ab|dès|desde|acima\sde|nad|över|over|felett)\s?$"
)
SHIPPING_AFTER: Final = re.compile(
    r"^[\s*+]*(?:flat\srate\s|standard\s|for\s)?(?:shipping|delivery|s&h|s/h|handling|versand|livraison|envío|postage|freight)\b|"
    r"^[\s*]*(?:or\smore|and\sup|minimum|orders?\b|purchase)"
)
TOTAL: Final = re.compile(r"(?:sub)?total|zwischensumme|gesamtsumme|montant\stotal|totale|totaal|razem")
OTHER_MONEY: Final = re.compile(
    r"(?:extra|additional|delivery|shipping|late)\scharges?|surcharge|deposit|anzahlung|acompte|pfand|core\scharge|gift\s?card|coupon|voucher|gutschein|promo\b|\bcode\b|rebate|cash\s?back|"
    r"\bpoints?\b|reward|earn|punkte|warranty|protection|insurance|garantie\b|engrav|assembly|installation|add-on|"
    r"cart|warenkorb|bundle|together|\bset\sprice|tax\b.{0,12}$|duty|fee\b|hazmat|"
    r"eco-?tax|eco-?part|éco-?part|eco-?contribution|recycling|écotaxe|budget|price\smatch|\bbids?\b|open[-\s]?box|refurbished|\bsold\s(?:for|at)\b|\bmap\b(?:\sprice)?\s?:?\s?$|(?:amazon|walmart|ebay|competitor\S*)\sprice|"
    r"\b(?:average|median|lowest|highest|last|recent|next|future|group|team|pallet|pick-?up|in-?store|contractor|trade|b2b|net)\sprice|"
    r"\bprice\s(?:for|of)\s(?:two|[2-9])\b|\b(?:2nd|second)\s(?:item|pair)\b|\bbuy\s[2-9]\b|^\s*(?:monthly|weekly|annual(?:ly)?|yearly)\s*:?\s*$|\brent(?:al)?\b|\blease\b|\bhire\b|worth|value[sd]?\sat|\bvalue\b"
)
OTHER_AFTER: Final = re.compile(
    r"^\s*(?:for|of|in|as|d'|de)?\s*(?:an?\s)?(?:eco-?tax|eco-?part|éco(?:-|tax|part|\b)|recycling|store\scredit|points|rewards?|deposit|pfand|fee\b|"
    r"credit|cash\s?back|(?:mail-in\s)?rebate|gift\scard|coupon|value\b|per\stree)"
)
MEMBER: Final = re.compile(
    r"member|\bclub\b|\bvip\b|loyalty|\bprime\b|log\s?in|sign\s?in|trade\sprice|wholesale|dealer|military|law\senforcement|"
    r"subscri|autoship|auto-ship|auto-?delivery|\babo\b|abonn|delivered\severy|\brecurring|mitglied|suscri|abbon|"
    r"student|teacher|\bsenior|employee|\bapp[-\s](?:only|price|exclusive)|new\scustomer|first\sorder|with\sautoship|sparabo|repeat\sdelivery|store\scard|credit\scard\sprice|\bplus\sprice|"
    r"\b(?:cash|e-?check|ach|wire|bank\stransfer|bitcoin|crypto|money\sorder)\b[\w/& -]{0,25}\s(?:price|discount)"
)
MEMBER_AFTER: Final = re.compile(
    r"^[\s*]*(?:for|with|as\sa|für|pour|per|voor)?\s?(?:members?|club|vip|subscri\w+|autoship|prime|mitglieder)\b"
)
#: What has to be done to pay only that: buy several, use a code, send in a form, pay in a certain way.
CONDITION_AFTER: Final = re.compile(
    r"^[\s*,(]*(?:each\s|ea\.?\s)?(?:after\b(?!\s(?:\w+\s){0,2}(?:discounts?|savings?|instant))|(?:when|if)\syou\b|when\s(?:buying|ordering|purchas)|(?:with|using|w/)\s(?:an?\s|the\s|your\s|our\s)?"
    r"(?:[\w-]+\s)?(?:codes?|coupons?|vouchers?|promo|rebate|trade-?in|purchase|card|membership|contract|subscription|subscribe|activation)\b|"
    r"(?:as\s)?down\b|due\s(?:now|today)|on\s(?:your\s|the\s)?first\sorder|.{0,20}\b(?:when|if)\syou\s(?:buy|order|purchase|spend)\b|"
    r".{0,12}\b(?:ab|from|dès|desde|vanaf|przy|od)\s\d+\s?(?:stück|stk|st|pcs|pieces|units|unités|szt|stuks)\b|"
    r"for\s(?:[2-9]|two|three|four|five|six)\b|mit\s(?:dem\s)?(?:code|gutschein)|avec\s(?:le\s)?code|con\s(?:el\s)?c[oó]d|à\svista|(?:no|com|via)\s(?:o\s)?(?:pix|boleto))"
)
#: A price cut that has to be asked for.
CONDITIONAL: Final = re.compile(
    r"\bcodes?\b|coupon|voucher|gutschein|newsletter|sign\s?up|first\s(?:order|purchase)|when\syou|if\syou|\bbuy\s\w+|bundle|repeat"
)
#: The amount of one piece in a quantity table: "1", "1 - 4", "1+", "any quantity".
TIER_OF_ONE: Final = re.compile(
    r"(?:^\s*|(?:buy|qty|quantity|menge|[(:])\s?)(?:1|bis\s\d+)\s?[:=@|]?\s?$|"
    r"(?:^|[\s(:])1\s?(?:\+|[-\u2013]\s?\d+|to\s\d+|or\smore|pcs?\.?|pieces?|units?|items?|box(?:es)?|cases?|packs?|st(?:ück|k)?\.?)"
    r"\s?[:=@|\-\u2013]?\s?(?:for|at|each)?\s?$|any\sq(?:ty|uantity)\s?:?\s?$"
)
TIER: Final = re.compile(
    r"(?:^|[\s(:])(?:(?:buy|qty|quantity|ab|from|dès|desde|da|vanaf|od|menge|buying|order)\s)?(?:\d{1,5})\s?"
    r"(?:\+|[-\u2013]\s?\d+|to\s\d+|or\smore|and\s(?:up|above)|und\smehr|et\splus|o\smás|of\smeer|for\b|@|"
    r"(?:pcs?\.?|pieces?|units?|items?|box(?:es)?|cases?|packs?|st(?:ück|k)?\.?|x)(?:\sor\smore|\+)?)\s?"
    r"[:=@|\-\u2013]?\s?(?:for|at|each|only|je|à)?\s?$"
)
FROM: Final = re.compile(
    r"(?:^|\W)(?:from|starting(?:\s(?:at|from))?|starts?\s(?:at|from)|as\slow\sas|low\sas|up\sto|ab|schon\sab|bereits\sab|bis\szu|"
    r"à\spartir\sde|dès|desde|a\spartir\sde|a\spartire\sda|da|vanaf|od|już\sod|från|fra|alkaen|from\sonly|min\.?|max\.?|"
    r"about|approx\.?|ca\.?|circa|est\.?|(?:base|starting|estimated|approximate)\sprice(?:\sis)?)(?:\s(?:only|just|nur|slechts|solo|seulement|tylko|kun))?\s?:?\s?$"
)
TAX_OUT: Final = re.compile(
    r"^[\s*]*[(\[]?\s*(?:(?:vat|tax|gst|mwst|tva)\.?\s(?:excl|not\sincl)|excl?\.?|ex\.?|excluding|without|plus|\+|zzgl\.?|exkl\.?|hors|ohne|bez|sin|senza|iva\sesclusa|h\.?t\.?\b|netto|net\b(?!\sprice))"
    r"\s?\d*\s?%?\s?(?:vat|tax|gst|mwst|ust|btw|tva|taxes?|moms|dph|iva|impuestos|mva|of\svat)?\b"
)
#: Words of tax without which the pattern above is about something else, such as shipping.
TAX: Final = re.compile(
    r"vat|tax|gst|mwst|ust\b|btw|tva|moms|dph|iva\b|impuestos|mva|\bh\.?t\.?\b|netto|\bnet\b|ttc|brutto"
)
TAX_IN: Final = re.compile(
    r"^[\s*]*[(\[]?\s*(?:(?:vat|tax|gst|mwst|tva)\.?\sincl|incl?\.?|including|inkl\.?|inclusive|brutto|t\.?t\.?c\.?\b|iva\s(?:incl|compresa)|con\siva|s\sdph|vat\sincl|tax\sincl)"
)
# Classes of an amount and of the elements around it that say what it is.
CLASS_OTHER: Final = re.compile(
    r"(?:^|[\s_-])(?:you-?save|saved?|savings?|sav|economies|ersparnis|tiers?|tier-?prices?|bulk|quantity-?(?:discounts?|breaks?|table|pricing)|"
    r"qty-?(?:breaks?|discounts?)|volume|staffel\w*|block-?prices?|installments?|instalments?|afterpay|klarna|affirm|sezzle|zip-?pay|shopify-payment-terms|credova|laybuy|"
    r"clearpay|finance|financing|monthly|per-?(?:unit|round|rd|kg|oz|100|shot)|unit-?price|unit-?pricing|price-?unit|base-?price|basis-?price|ppu|"
    r"ppr|cpr|cost-?per\w*|shipping|delivery|versand\w*|member\w*|loyalty|vip|subscri\w*|autoship|selling-?plans?|sns|recurring|bundles?|"
    r"add-?ons?|warranty|protection|gift\w*|coupons?|deposit|rewards?|points|cashback|cart-?(?:total|count|subtotal)|"
    r"subtotal|grand-?total|total|comparing|omnibus|lowest-?price|history-?price)(?=[\s_-]|$)|yousave|unitprice|tierprice|pricesavings|saveprice|price-save|baseprice(?!block)"
)
CLASS_WAS: Final = re.compile(
    r"(?:^|[\s_-])(?:was|old|compare(?:-?at|d)?|rrp|uvp|msrp|srp|strike\w*|crossed|before|former|previous|retail|pvpr|"
    r"list-?price|price-?list-?price|original|advised?|suggested|non-?sale|discounted-?from|price-?from-?was|pseudo-?price|pseudo)(?=[\s_-]|$)|"
    r"oldprice|wasprice|compareprice|compareat|listprice|originalprice|retailprice|crossedprice|priceold|pricewas|rrpprice|line-through"
)
CLASS_REGULAR: Final = re.compile(
    r"(?:^|[\s_-])(?<!font-)(?<!text-)(?<!weight-)(?<!body-)(?<!fw-)(?:regular|reg|normal|standard)(?=[\s_-]|$)|regularprice|regprice"
)
CLASS_CURRENT: Final = re.compile(
    r"(?:^|[\s_-])(?:sale|special|current|now|final|our|selling|offer|deal|today|withtax|actual|new)(?=[\s_-]|$)|"
    r"saleprice|specialprice|currentprice|finalprice|ourprice|sellingprice|newprice|withtax"
)
_SKU_NAMES: Final = (
    r"(?:sku|item\s?(?:#|no\.?|number|code)|product\s?(?:code|sku|#|no\.?|number)|article\s(?:no\.?|number)|stock\s?(?:code|#)|"
    r"artikel-?\s?(?:nr\.?|nummer)|art\.?-?\s?nr\.?|bestell-?\s?nr\.?|produktnummer|référence|réf\.?|referencia|codice(?:\sprodotto)?|"
    r"artikelnummer|varenummer|kod\sproduktu|kód(?:\sproduktu)?|cikkszám)\s?[:#]?"
)
SKU_LABEL: Final = re.compile(rf"^\s*{_SKU_NAMES}\s*(?:[:#]\s*)?([\w][\w\-./ ]{{0,60}}?)\s*$", re.IGNORECASE)
SKU_LABEL_ALONE: Final = re.compile(_SKU_NAMES)

#: Titles of pages that refuse a visitor.
REFUSING_TITLE: Final = re.compile(
    r"^(?:just a moment|attention required|access (?:to this page has been )?denied|pardon our interruption|robot check|are you (?:a )?(?:human|robot)|"
    r"security (?:check|verification)|verify(?:ing)? (?:that )?you are (?:a )?human|human verification|ddos-guard|checking your browser|"
    r"please (?:wait|verify)|bot (?:verification|detection)|request (?:blocked|unsuccessful|rejected)|forbidden|403\b|429\b|too many requests|"
    r"blocked|captcha|radware|sucuri|one more step|un momento|einen moment|un instant|nur einen moment|zugriff verweigert|accès refusé|"
    r"acceso denegado|you have been blocked|this request was blocked|client challenge|vercel security checkpoint|error 10\d\d)"
)
#: What their source contains.
REFUSING: Final = re.compile(
    r"cf-chl-|cf_chl_opt|challenge-platform/h/|px-captcha|_incapsula_resource|captcha-delivery\.com|/_sec/cp_challenge|sec-if-cpt|awswaf|"
    r"g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|ddos-guard|perfdrive\.com|distil_r_|geo\.captcha|kpsdk|sgcaptcha|"
    r"verify you are (?:a )?human|unusual traffic|enable javascript and cookies to continue|please enable js and disable any ad blocker|"
    r"incapsula incident id|you have been blocked|access denied|are you a robot|not a robot|reference #\d+\.[0-9a-f]+"
)
