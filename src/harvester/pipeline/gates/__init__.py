"""Gates: what makes a run wait for a person. One file each, pure functions of what the run found.

    facts of the run, thresholds of the feed ─> gate ─> Finding: passes or holds, with figures and a reason

To add a gate, write its file and name it in `GATES`.
"""

from harvester.pipeline.gates.baseline_shrunk import baseline_shrunk
from harvester.pipeline.gates.expiry_spike import expiry_spike
from harvester.pipeline.gates.facts import Finding, RunFacts, Thresholds, Verdict
from harvester.pipeline.gates.price_shock import price_shock
from harvester.pipeline.gates.reject_share import reject_share
from harvester.pipeline.gates.repeats_ignored import repeats_ignored
from harvester.pipeline.gates.url_hash import url_hash

#: In the order in which people should hear of them.
GATES = (expiry_spike, baseline_shrunk, url_hash, price_shock, repeats_ignored, reject_share)  # mutant: gates

__all__ = ["GATES", "Finding", "RunFacts", "Thresholds", "Verdict", "judge"]


def judge(facts: RunFacts, thresholds: Thresholds) -> Verdict:
    """Ask every gate; one that holds is enough."""
    return Verdict(findings=tuple(gate(facts, thresholds) for gate in GATES))
