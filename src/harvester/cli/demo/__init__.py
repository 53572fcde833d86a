"""`harvester demo`: the engine at work, on a database of its own.

command     what is typed
home        where the demo's data, login and log lie
kinds       the kinds of jobs that it runs
acts        what each part of the story shows, and what proves it
story       puts the jobs in, kills a worker, waits for the proofs
stage       starts and stops the processes, and tells what is going on
"""
