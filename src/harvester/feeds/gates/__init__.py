"""The gates of feeds, one file each: a pure function of the run's counts, and its `Gate`.

To add a gate, write its file and add it to `GATES`.
"""

from harvester.feeds.gates import (
    baseline_shrunk,
    expiry_spike,
    price_shock,
    reject_share,
    repeats_ignored,
    url_hash,
)
from harvester.feeds.gates.facts import RunFacts, Thresholds

#: In the order in which they are shown.
GATES = (  # mutant: gates
    expiry_spike.GATE,
    baseline_shrunk.GATE,
    url_hash.GATE,
    price_shock.GATE,
    repeats_ignored.GATE,
    reject_share.GATE,
)

__all__ = ["GATES", "RunFacts", "Thresholds"]
