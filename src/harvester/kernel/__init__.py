"""Pure things that everything else stands on: errors, settings, retry arithmetic, ids. No Django, no I/O."""
