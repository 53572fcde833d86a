"""Evidence: runs of hosted actors that become items of a brand. So far one thin path from a run to its items."""
