"""Which names stand for secrets.

Names are compared without case, dashes, underscores and dots. A name is secret if it is one of `EXACT`, or if
it holds one of `STEMS` and does not end in a word that makes it a statement *about* a secret (`token_count`,
`secret_version`, `password_changed_at`). In doubt a name is secret: a hidden number costs less than a shown
password.
"""

import re
from functools import lru_cache

#: Unmistakable wherever they stand in a name.
STEMS = (
    "accesskey", "apikey", "authorization", "ciphertext", "cookie", "credential", "encryptionkey", "jwt",
    "passphrase", "passwd", "password", "plaintext", "privatekey", "secret", "signature", "signingkey",
    "token", "webhookurl",
)  # fmt: skip

#: Secret only as the whole name: inside longer names they mean something else (author, session_count).
EXACT = frozenset({
    "auth", "authtag", "basicauth", "dbpass", "ftppass", "iv", "nonce", "otp", "proxyauth", "pwd", "session",
    "sessiondata", "sessionid", "sessionkey", "sharedkey", "sig", "smtppass", "sshkey", "userpass", "xauth",
})  # fmt: skip

#: Words behind a stem that turn it into a harmless statement. They count with and without a separator.
ABOUT = (
    "bytes", "changed", "count", "error", "exception", "expired", "expires", "expiry", "fields", "invalid",
    "kind", "length", "limit", "missing", "name", "names", "policy", "required", "size", "status", "type",
    "used", "version", "warning",
)  # fmt: skip

#: The same, but too short to be recognised without a separator.
ABOUT_WORDS = frozenset({"age", "at", "by", "id", "ids", "in", "py", "ttl"})

_SEPARATORS = re.compile(r"[^a-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Numbers and encodings at the end (password1, KEY_B64) say nothing about what the name means.
_ENDING = re.compile(r"(?:b64|base64|hex|\d)+\Z")
#: No name is longer; what is, is text.
_LONGEST = 200


def is_secret_name(name: object) -> bool:
    """Tell whether a value under this name is to be hidden."""
    if isinstance(name, bytes):
        name = name[: _LONGEST + 1].decode("latin-1")
    return isinstance(name, str) and len(name) <= _LONGEST and _is_secret(str.__str__(name))


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = [word for word in _SEPARATORS.split(_HUMP.sub("_", name).lower()) if word]
    joined = "".join(words)
    bare = _ENDING.sub("", joined) or joined
    if joined in EXACT or bare in EXACT:
        return True
    if not any(stem in joined for stem in STEMS):
        return False
    return not (words[-1] in ABOUT_WORDS or joined.endswith(ABOUT))
