"""What `harvester doctor` looks at. Each check answers one finding and stops none of the others."""

from harvester.cli.checks.examine import examine
from harvester.cli.checks.finding import Finding

__all__ = ["Finding", "examine"]
