"""Install the programs that only tests need: a browser, a Redis server and Prometheus' checker of rules.

On Debian and Ubuntu, as root, missing ones are installed. Elsewhere the script prints which tests will be skipped, and
fails if CI=true. It starts no service: the tests start their own.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Name -> programs, one of which is enough, and the Debian packages that contain one.
PARTS = {
    "a browser": (("chromium", "chromium-browser"), ("chromium", "fonts-dejavu-core")),
    "a Redis server": (("redis-server",), ("redis-server",)),
    "a browser without a desktop": (("chromium-headless-shell",), ("chromium-headless-shell",)),
    "network namespaces": (("ip",), ("iproute2",)),
    "promtool": (("promtool",), ("prometheus",)),
}
#: The first makes tests faster; the only test that needs the second is reported as skipped without it.
OPTIONAL = {"a browser without a desktop", "network namespaces"}
SKIPPED = {
    "a browser": "the browser tests",
    "a Redis server": "the tests that need Redis",
    "promtool": "the test of the alert rules",
}
#: Debian runs it before it starts a service: exit code 101 forbids the start.
POLICY = Path("/usr/sbin/policy-rc.d")
FORBID = "#!/bin/sh\nexit 101\n"


def main() -> int:
    missing = find_missing()
    if missing and may_install():
        install([package for part in missing for package in PARTS[part][1]])
        missing = find_missing()
    needed = [part for part in missing if part not in OPTIONAL]
    for part in needed:
        packages = " ".join(PARTS[part][1])
        print(f"Missing: {part}; {SKIPPED[part]} will be skipped. On Debian: apt-get install {packages}")
    return 1 if needed and os.environ.get("CI", "").lower() == "true" else 0


def find_missing() -> list[str]:
    return [part for part, (programs, _) in PARTS.items() if not any(map(shutil.which, programs))]


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: list[str]) -> None:
    print(f"Installing what the tests need: {' '.join(packages)} ...", flush=True)
    allowed = not POLICY.exists()
    if allowed:
        POLICY.write_text(FORBID, encoding="ascii")
        POLICY.chmod(0o755)
    try:
        if apt("update"):
            apt("install", "-y", "--no-install-recommends", *packages)
    finally:
        if allowed:
            POLICY.unlink()


def apt(*arguments: str) -> bool:
    """Run apt-get and return whether it succeeded; only a failure is printed."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    program = shutil.which("apt-get") or "apt-get"
    done = subprocess.run([program, "-q", *arguments], env=env, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"apt-get {arguments[0]} failed: {done.stderr.strip()[-500:]}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
