"""The gates of feeds. One file each: a pure function of what the run found, and its `Gate`.

To add a gate, write its file and name it in `GATES`.
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

#: In the order in which people should read about them.
GATES = (  # mutant: gates
    expiry_spike.GATE,
    baseline_shrunk.GATE,
    url_hash.GATE,
    price_shock.GATE,
    repeats_ignored.GATE,
    reject_share.GATE,
)

__all__ = ["GATES", "RunFacts", "Thresholds"]
