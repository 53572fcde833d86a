"""A short storm with a new seed each time; `make chaos` is the long one."""

import random

import pytest
from tests.support.chaos.run import run


@pytest.mark.slow
def test_in_a_storm_each_effect_comes_exactly_once(own_database):
    assert run(own_database, seed=random.randrange(1_000_000), seconds=20, jobs=400) == []
