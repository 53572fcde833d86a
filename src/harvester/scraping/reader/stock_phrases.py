"""Words of shop pages about buying and stock, in the main European languages. Patterns match text in lower case."""

import re
from typing import Final

from harvester.scraping.reader.phrases import lines

#: Texts of the button that puts the product into the cart.
BUY: Final = re.compile(
    lines(r"""
    add(?:\s\w+)?\sto\s(?:my\s|your\s|shopping\s|the\s)?(?:cart|basket|bag|trolley|order)
    add\sto\s(?:cart|basket|bag)
    buy\s(?:it\s)?now
    order\snow
    put\sin(?:to)?\s(?:my\s|your\s|the\s)?(?:cart|basket|bag)
    in\sden\s(?:waren|einkaufs)?korb
    in\sden\seinkaufswagen
    jetzt\s(?:kaufen|bestellen)
    ajouter\sau\spanier
    ajouter\sà\smon\spanier
    añadir\s(?:al\scarrito|a\sla\scesta|a\sla\sbolsa)
    agregar\sal\scarrito
    aggiungi\sal\scarrello
    metti\snel\scarrello
    in\s(?:de\s|mijn\s)?winkel(?:wagen|mand)(?:je|tje)?
    toevoegen\saan\swinkel
    (?:dodaj\s)?do\skoszyka
    adicionar\sao\scarrinho
    lägg\s(?:i|till\si)\s(?:varukorg|kundvagn|kassen)
    læg\si\s(?:indkøbs)?kurv
    (?:přidat|vložit)\s(?:do|v)\skošík
    do\skošíku
    legg\si\shandle(?:kurv|vogn)
    lisää\sostoskoriin
    kosárba
    adaugă\sîn\scoș
    sepete\sekle
    (?:добавить\s)?в\sкорзину
    купить
    купити
    добави\sв\sколичката
    προσθήκη\sστο\sκαλάθι
    dodaj\su\skošaricu
    v\skošarico
    thêm\svào\sgiỏ
    أضف\sإلى\s(?:السلة|العربة)
    (?:הוסף|הוספה)\sל(?:סל|עגלה)
    カートに(?:入れる|追加)
    買い物かごに入れる
    加入(?:购物车|購物車)
    장바구니
    ^(?:buy|purchase|order|köp|køb|kjøp|comprar|acheter|acquista|kaufen|bestellen|koupit|kup\steraz|kúpiť|osta)$
    """)
)
#: Buttons that buy something else than the one product.
BUY_OTHERS: Final = re.compile(r"\b(?:all|both|these|selected|bundle|set|items|alle|tous|todos|tutti|wish\s?list)\b")
SOLD_OUT_BUTTON: Final = re.compile(
    lines(r"""
    sold\s?out
    out\sof\sstock
    unavailable
    notify\sme
    email\s(?:me\s)?when
    (?:join\s(?:the\s)?)?wait\s?list
    ausverkauft
    nicht\s(?:verfügbar|lieferbar|auf\slager)
    benachrichtig
    épuisé
    rupture
    indisponible
    agotado
    sin\sstock
    avísame
    esaurito
    non\sdisponibile
    avvisami
    uitverkocht
    niet\sop\svoorraad
    wyprzedan
    niedostępny
    powiadom
    esgotado
    slutsåld
    slut\si\slager
    udsolgt
    vyprodáno
    nedostupn
    utsolgt
    loppuunmyyty
    tükendi
    нет\sв\sналичии
    売り切れ
    品切れ
    在庫なし
    缺货
    품절
    אזל
    نفد
    """)
)
PRE_ORDER_BUTTON: Final = re.compile(r"pre-?\s?order|back-?\s?order|vorbestell|précommand|reserva|prenota|předobjedn")

#: It cannot be bought. Found anywhere in a short text.
OUT: Final = re.compile(
    lines(r"""
    \bout[\s-]of[\s-]stock\b
    \bsold[\s-]?out\b
    \b(?:currently|temporarily|permanently|is|item|product)\s(?:is\s)?(?:not\savailable|unavailable)\b
    ^unavailable$
    \bno\slonger\s(?:available|in\sstock)\b
    \bnot\s(?:currently\s)?in\sstock\b
    ^discontinued\b
    \b(?:this|item|product)\s(?:\w+\s){0,3}discontinued\b
    \bnicht\s(?:mehr\s)?(?:auf\slager|verfügbar|lieferbar|vorrätig|erhältlich)\b
    \bausverkauft\b
    \bvergriffen\b
    \brupture\sde\sstock\b
    ^(?:en\s)?rupture$
    \bépuisée?\b
    \b(?:actuellement\s)?indisponible\b
    \bnon\sdisponible\b
    \bplus\sdisponible\b
    \bagotad[oa]\b
    \bsin\s(?:stock|existencias)\b
    \bno\sdisponible\b
    \besaurit[oa]\b
    \bnon\sdisponibile\b
    \buitverkocht\b
    \bniet\s(?:meer\s)?(?:op\svoorraad|leverbaar|beschikbaar)\b
    \bwyprzedan[eyao]\b
    \bniedostępn[yae]\b
    \bbrak\s(?:w\smagazynie|towaru|na\sstanie)\b
    \besgotad[oa]\b
    \bindisponível\b
    \bsem\sstock\b
    \bslutsåld\b
    \bslut\si\slager\b
    \b(?:ej|inte|ikke)\s(?:i\slager|på\slager)\b
    \budsolgt\b
    \butsolgt\b
    \bvyprodáno\b
    \bnení\sskladem\b
    \bnedostupn[éý]\b
    \bnie\sje\sna\ssklade\b
    \bei\svarastossa\b
    \bloppu(?:nut|unmyyty)\b
    \bnincs\s(?:készleten|raktáron)\b
    \bstoc\sepuizat\b
    \bεξαντλη(?:μένο|θηκε)
    \btükendi\b
    \bstokta\syok\b
    \bнет\sв\s(?:наличии|наявності)\b
    \bнемає\sв\sнаявності\b
    (?:在庫|ざいこ)(?:なし|切れ)
    売り切れ
    品切れ
    缺货
    无货
    품절
    غير\sمتوفر
    نفد
    אזל\sמ?ה?מלאי
    """)
)
BACKORDER: Final = re.compile(
    lines(r"""
    ^(?:(?:availability|status|stock(?:\sstatus)?)\s?:?\s)?(?:available\s(?:on|for)\s)?(?:back|pre)-?\s?order(?:ed)?\b
    \b(?:on|available\s(?:on|for))\s(?:back|pre)-?\s?order\b
    ^pre-?sale\b
    ^(?:jetzt\s)?vorbestell(?:bar|en|ung|artikel)\b
    \bnachbestellt\b
    ^(?:en\s)?pré-?commande\b
    ^sur\scommande\b
    ^(?:en\s)?(?:pre-?venta|reserva)\b
    ^(?:in\s)?pre-?ordine\b
    ^(?:in\s)?nabestelling\b
    ^(?:przedsprzedaż|na\szamówienie)\b
    ^pré-?venda\b
    ^förboka\b
    ^forudbestil\b
    ^předobjednávka\b
    """)
)
#: It can be bought: at the start of a short text, after at most a label and a count.
IN: Final = re.compile(
    r"^(?:(?:availability|available|stock(?:\sstatus)?|status|inventory|verfügbarkeit|lagerbestand|lager|"
    r"disponibilité|disponibilidad|disponibilità|beschikbaarheid|voorraad|dostępność|disponibilidade|lagerstatus|"
    r"dostupnost)\s?[:\-]?\s)?[^\w]*(?:(?:only|just|nur(?:\snoch)?|plus\sque|solo|nog|tylko)\s)?(?:[1-9]\d{0,4}\s?\+?\s)?"
    r"(?:x\s|items?\s|pcs\.?\s|pieces?\s|stück\s|stk\.?\s|units?\s|st\.?\s)?(?:"
    + lines(r"""
    in[\s-]stock
    available(?!\s(?:on|for|to|in|from|at|soon|options|colou?rs|sizes))
    left\sin\sstock
    (?:ready|available)\sto\sship
    auf\slager
    (?:sofort|ab\slager|umgehend)\s(?:verfügbar|lieferbar|versandfertig)
    sofort\sversandfertig
    lieferbar
    vorrätig
    verfügbar
    lagernd
    en\sstock
    disponible
    in\sstock
    en\sexistencias
    hay\sexistencias
    disponibile
    in\smagazzino
    op\svoorraad
    direct\sleverbaar
    dostępny
    w\smagazynie
    na\sstanie
    em\sstock
    em\sestoque
    disponível
    i\slager
    finns\si\slager
    på\slager
    skladem
    na\ssklade
    varastossa
    készleten
    raktáron
    în\sstoc
    stokta\svar
    в\s(?:наличии|наявності)
    διαθέσιμο
    在庫あり
    有货
    현재\s구매\s가능
    متوفر
    במלאי
    """)
    + r")(?!\w)"
)
#: A text that is about the stock, and not only a word such as "available".
NAMES_STOCK: Final = re.compile(
    r"stock|sold\s?out|order|lager|vorrätig|verkauft|vergriffen|épuisé|agotad|existencias|esaurit|magazzino|voorraad|uitverkocht|magazyn|"
    r"stanie|wyprzedan|esgotad|estoque|slutsåld|udsolgt|utsolgt|sklad|vyprodáno|varasto|loppu|készlet|raktár|stoc\b|commande|stokta|tükendi|"
    r"наличии|наявності|在庫|売り切れ|품절|מלאי"
)
#: A short text with which a page says that this product is not simply there now, whatever its button says.
NOT_SIMPLY_THERE: Final = re.compile(
    lines(r"""
    ^(?:(?:usually|normally|typically|currently|please|order\snow,?)\s)*(?:ships?|shipping|deliver\w*|dispatch\w*|lead[\s-]?time|due|allow|lieferzeit|lieferbar|versand\w*|délai|expédi\w*|livraison|plazo|levertijd|leveranstid)\b.{0,30}\b(?:weeks?|wks?|months?|wochen?|monate?n?|semaines?|mois|semanas?|settimane|weken|veckor|tygodni)\b
    \b(?:ships?|shipping(?!\s(?:arrives|free|estimate))|available|expected(?!\s(?:delivery|to\sarrive))|due|eta|lieferbar|verfügbar|disponible)\b[^$€£]{0,12}(?:\b(?:0?[1-9]|[12]\d|3[01])[./](?:0?[1-9]|[12]\d|3[01])\b|\b\d{0,2}\s?(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)?\b)
    \bships?\swhen\b
    \b(?:ship\w*|leaves?|deliver\w*|dispatch\w*|arriv\w*|allow|lead[\s-]?time|lieferzeit|délai)\b[^.!]{0,30}\b(?:weeks?|wks?|months?|wochen|monate)\b
    \b(?:ship\w*|leaves?|dispatch\w*|lead[\s-]?time|lieferzeit)\b[^.!]{0,25}\b[1-9]\d\s(?:business\s|working\s)?(?:days|tage)\b
    \b(?:e-?mail|notify|alert|text)\s(?:me|us)\b.{0,24}\b(?:available|availability|back|stock)\b
    \b(?:call|phone|contact\sus)\sto\s(?:order|buy|purchase)\b
    \b(?:inquire|enquire|call|ask)\s(?:about|for|to\scheck)\s(?:\w+\s)?(?:availability|stock)\b
    \bavailability\s?[-:\u2013]?\s?(?:please\s)?call\b
    \brequest\s(?:a\s)?quote\b
    \b(?:in|at)\s(?:selected\s|our\s)?stores?\sonly\b
    \b(?:out|gone|over|finished|ended|closed)\sfor\sthe\s(?:season|year)\b
    \bout\sof\sprint\b
    \bwe(?:'re|\sare)\s(?:all\s|currently\s|temporarily\s)?out\b
    \bnot\sfor\ssale\b
    \b(?:for\s)?display\sonly\b
    \b(?:not|un)\s?available\sfor\s(?:shipping|delivery|purchase|sale|order)
    ^(?:reserved|obsolete|archived|eol|none)\b
    \bend[\s-]of[\s-](?:life|line)\b
    \b(?:archived|obsolete|retired)\s(?:product|item)\b
    \b(?:listing|sale|offer|auction)\s(?:has\s)?ended\b
    \blast\s(?:one|item|piece)\ssold\b
    (?<![\d.,+])\b0\s(?:left|available|remaining|items?\sleft|in\sstock|on\shand)\b
    \brelease(?:s|d)?\s(?:date|on)\b
    \bif\sthis\sitem\swill\sbe\b
    ^(?:more\s|on\s(?:its|the)\sway|more\son)\b.{0,12}\bway\b
    \bexpected\b.{0,20}\b(?:stock|weeks?)\b
    \b(?:back|available|coming|in\sstock|restock\w*|arriving)\s(?:again\s)?soon\b
    ^(?:currently\s|now\s)?on\sorder\b
    \b(?:made|built|printed)[\s-](?:to[\s-]order|on[\s-]demand)\b
    ^special[\s-]order\b
    ^(?:sorry,?\s)?(?:(?:this|the|item|product)\s(?:\w+\s){0,3})?(?:currently\s|temporarily\s)?(?:not\s|un)available(?:\s(?:online|for\s(?:shipping|delivery|purchase|sale|order)|in\syour\s(?:area|region|country)|to\sship))?[.!]*$
    \bnot\s(?:sold|available)\sonline\b
    ^(?:qty|quantity|stock|inventory|available)\b[\w\s]{0,20}:?\s0$
    \b(?:call|contact|ask|email)\b.{0,12}\b(?:for|about|check|confirm)\savailability
    ^(?:no\sstock|none\s(?:left|available))\b
    ^inventory\s?:\s?(?:out|none|no)\b
    \bno\slonger\s(?:sold|made|produced|carried|offered|stocked|manufactured)\b
    ^retired\b
    ^(?:this|the)\s(?:\w+\s){1,4}retired\b
    \bwait(?:ing)?[\s-]?list\b
    \b(?:in[\s-]?store|store|pick[\s-]?up|showroom|in[\s-]person)\s(?:purchases?\s|pick[\s-]?up\s|orders?\s)?only\b
    \bonly\s(?:available\s)?in[\s-]stores?\b
    \bnur\s(?:abholung|im\s(?:laden|geschäft))\b
    \b(?:date|eta)\b.{0,12}\b(?:to\sbe\s(?:confirmed|announced)|tb[acd])\b
    """)
)
#: A label after which a page says whether the product is there, and what may stand there without a word about it.
STOCK_LABEL: Final = re.compile(
    r"^(?:(?:product\s|item\s)?availability|stock(?:\s(?:status|level|availability))?|inventory(?:\sstatus)?|verfügbarkeit|lagerbestand|"
    r"disponibilité|disponibilidad|disponibilità|beschikbaarheid|dostępność|disponibilidade|lagerstatus|dostupnost)\s?:\s?"
)
IN_TIME: Final = re.compile(
    r"\b(?:hours?|days?|tage?n?|stunden|jours?|días|giorni|dagen|dni|today|tomorrow|same[\s-]day|yes|ja|oui|sí|now)\b"
)
#: With one of these words, a text does not say that this product is there now.
NOT_NOW: Final = re.compile(
    r"\b(?:when|notify|soon|again|if|not|no|never|until|once|expected|from|ab|wieder|wenn|bald|kein|keine|nicht|pas|"
    r"bientôt|quand|cuando|pronto|quando|non|niet|weer|zodra|nie|não|inte|ikke|ej|není|stores?|email|sign|filter|"
    r"show|only\sin|items|products|alle|bientot|variant|unavailable|stock\s(?:at|near))\b|\?"
)
