"""Pure code that everything else uses: errors, settings, retry arithmetic, ids, money, addresses, identities.

No Django, no I/O.
"""
