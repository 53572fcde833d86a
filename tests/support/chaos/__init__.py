"""Killed and frozen workers, a database that restarts, and jobs whose effects are counted afterwards.

kinds     the jobs and their effects
feeder    enqueues over time, and remembers what was acknowledged
storm     what happens to the workers and to the database
verdict   what must be true when everything is over
run       one whole run
"""
