"""Many made-up feeds, runs and offers, to see how fast everything is when there is much of it.

What is made obeys the rules that real runs obey: offers equal what their prices say, at most one run of a source is
held, and what promotion appends is only appended. The same seed makes the same rows, apart from the moment they are
computed from. Nothing here belongs into a database with real data.
"""
