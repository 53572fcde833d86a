"""Hold a cluster on behalf of a test, in a process that the test may kill.

It says `held` and when the server was started, or the error; then it obeys words on its standard input.
Everything is imported before the process becomes another user, who may not be able to read this installation.
"""

import argparse
import os
import pwd
import sys
from pathlib import Path

import psycopg

from harvester.engine.embedded import APP_ROLE, Cluster, Hold
from harvester.kernel.errors import HarvesterError


def become(name):
    entry = pwd.getpwnam(name)
    os.setgroups([])
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)


def started_at(cluster):
    with psycopg.connect(**cluster.address(APP_ROLE)) as connection:
        return connection.execute("SELECT pg_postmaster_start_time()::text").fetchone()[0]


def say(*words):
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
    sys.stdout.flush()


def fork_that_leaves_the_with_block(hold: Hold):
    child = os.fork()
    if not child:
        with hold:
            pass
        os._exit(0)
    os.waitpid(child, 0)
    say("forked")


def obey(hold):
    for word in sys.stdin:
        if word.strip() == "fork":
            fork_that_leaves_the_with_block(hold)
        elif word.strip() == "release":
            hold.release()
            say("released")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("--user", help="become this user first")
    parser.add_argument("--site", help="find the wheel here")
    wanted = parser.parse_args()
    if wanted.site:
        sys.path.insert(0, wanted.site)
    if wanted.user:
        become(wanted.user)
    cluster = Cluster(wanted.home)
    try:
        hold = cluster.hold()
        say("held", started_at(cluster))
    except HarvesterError as error:
        say(type(error).__name__, error)
        return
    obey(hold)


if __name__ == "__main__":
    main()
