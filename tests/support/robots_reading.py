"""A second reading of robots.txt, by the letter of RFC 9309 and as slow as it likes; nothing is shared with the first.

It knows no misspelled lines and evaluates one agent's group, or that of everybody if the agent has none.
"""

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
HEX = b"0123456789abcdefABCDEF"
UNRESERVED = LETTERS + b"0123456789-._~"
RESERVED = b":/?#[]@!$&'()*+,;="
ANYTHING, END = "anything", "end"


def rfc_allows(body: bytes, target: str, agent: str, *, same_delimiters_in: frozenset[str] = frozenset()) -> bool:
    """`same_delimiters_in` has the rules ("allow", "disallow") that take an escaped delimiter for a plain one."""
    best_length, best_allows = -1, True
    for allows, pattern in rules_for(body, agent.encode()):
        is_same = ("allow" if allows else "disallow") in same_delimiters_in
        if not matches(items_of(pattern, is_same), octets(target.encode(errors="surrogatepass"), is_same)):
            continue
        length = length_of(pattern)
        if length > best_length or (length == best_length and allows):
            best_length, best_allows = length, allows
    return best_allows


def rules_for(body: bytes, agent: bytes) -> list[tuple[bool, bytes]]:
    """The rules of every group that names the agent; of every group that names everybody if none does."""
    groups: list[tuple[set[bytes], list[tuple[bool, bytes]]]] = []
    is_listing_agents = False
    for line in lines_of(body):
        if b":" not in line:
            continue
        name, value = line[: line.index(b":")].strip().lower(), line[line.index(b":") + 1 :].strip()
        if name == b"user-agent":
            token = token_of(value)
            if not token:
                continue  # this is not a line of the grammar, so it ends nothing
            if not is_listing_agents:
                groups.append((set(), []))
            groups[-1][0].add(token)
            is_listing_agents = True
        elif name in {b"allow", b"disallow"}:
            is_listing_agents = False
            if groups and value:
                groups[-1][1].append((name == b"allow", value))
    wanted = token_of(agent)
    chosen = [rules for agents, rules in groups if wanted in agents]
    if not chosen:
        chosen = [rules for agents, rules in groups if b"*" in agents]
    return [rule for rules in chosen for rule in rules]


def lines_of(body: bytes) -> list[bytes]:
    """The lines without their comments."""
    if body[:3] == b"\xef\xbb\xbf":
        body = body[3:]
    found = [bytearray()]
    is_comment = False
    for byte in body[:512_000]:
        if byte in b"\r\n":
            found.append(bytearray())
            is_comment = False
        elif byte == ord("#"):
            is_comment = True
        elif not is_comment:
            found[-1].append(byte)
    return [bytes(line) for line in found]


def token_of(value: bytes) -> bytes:
    if value.split()[:1] == [b"*"]:
        return b"*"
    end = 0
    while end < len(value) and value[end] in LETTERS + b"-_":
        end += 1
    return value[:end].lower()


def octets(text: bytes, same_delimiters: bool) -> list[object]:
    """What each octet of an address stands for: a number, or a pair for an octet that was escaped and has to be."""
    found: list[object] = []
    place = 0
    while place < len(text):
        byte = text[place]
        if byte == ord("%") and len(text) > place + 2 and text[place + 1] in HEX and text[place + 2] in HEX:
            byte = int(text[place + 1 : place + 3], 16)
            place += 3
            is_plain = byte in UNRESERVED or (same_delimiters and byte in RESERVED)
            found.append(byte if is_plain or byte in b"*$" else ("escaped", byte))
        else:
            place += 1
            found.append(byte if byte in UNRESERVED or byte in RESERVED else ("escaped", byte))
    return found


def items_of(pattern: bytes, same_delimiters: bool) -> list[object]:
    is_ending = pattern.endswith(b"$")
    found: list[object] = []
    for number, piece in enumerate((pattern[:-1] if is_ending else pattern).split(b"*")):
        if number:
            found.append(ANYTHING)
        found += octets(piece, same_delimiters)
    return [*found, END] if is_ending else found


def length_of(pattern: bytes) -> int:
    """The octets of a pattern when everything that has to be escaped is."""
    length, place = 0, 0
    while place < len(pattern):
        byte = pattern[place]
        if byte == ord("%") and len(pattern) > place + 2 and pattern[place + 1] in HEX and pattern[place + 2] in HEX:
            length += 1 if int(pattern[place + 1 : place + 3], 16) in UNRESERVED else 3
            place += 3
        else:
            is_inner_dollar = byte == ord("$") and place < len(pattern) - 1
            length += 1 if (byte in UNRESERVED or byte in RESERVED) and not is_inner_dollar else 3
            place += 1
    return length


def matches(items: list[object], path: list[object]) -> bool:
    """Follow every way at once in which the pattern can have consumed the beginning of the path."""
    places = {0}
    for item in items:
        if item == ANYTHING:
            places = {later for place in places for later in range(place, len(path) + 1)}
        elif item == END:
            places &= {len(path)}
        else:
            places = {place + 1 for place in places if place < len(path) and path[place] == item}
    return bool(places)
