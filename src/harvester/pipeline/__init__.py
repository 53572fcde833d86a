"""From staged rows to facts, for all kinds of sources: match, hold, promote."""
