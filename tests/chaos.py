"""`make chaos`: minutes of killed and frozen workers and of database restarts; ends with 1 if anything is wrong."""

import argparse
import os
import random
import shutil
import sys
import tempfile


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="default: a random one, printed")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--jobs", type=int, default=5000)
    options = parser.parse_args()
    home = tempfile.mkdtemp(prefix="harvester-chaos-home-")
    try:
        wrong = _run(home, options)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if wrong:
        first = "".join(f"VIOLATION {line}\n" for line in wrong[:50])
        sys.exit(f"{first}{len(wrong)} violations with seed {options.seed}")
    sys.stdout.write("each effect exactly once, nothing lost, nothing doubled\n")


def _run(home: str, options: argparse.Namespace) -> list[str]:
    for name in [name for name in os.environ if name.startswith(("HARVESTER_", "CREDENTIAL_", "WORKER_ID"))]:
        del os.environ[name]
    os.environ |= {"HARVESTER_HOME": home, "DJANGO_SETTINGS_MODULE": "harvester.settings"}
    import django

    django.setup()
    from tests.support.chaos.run import run
    from tests.support.own_cluster import migrated_cluster

    with migrated_cluster() as cluster, cluster.in_use():
        return run(cluster, seed=options.seed, seconds=options.seconds, jobs=options.jobs)


if __name__ == "__main__":
    main()
