"""Pure things that everything else stands on: errors, settings, retry arithmetic, ids, money, addresses, identities.

No Django, no I/O.
"""
