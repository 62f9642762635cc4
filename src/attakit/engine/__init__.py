"""The loop that connects stream, method, oracle and reporters, and the rounds of a pool."""

from attakit.engine.adapt import adapt
from attakit.engine.loop import drain, run
from attakit.engine.pool import PoolAdaptation, PoolResult
from attakit.engine.pool_learner import Pool, PoolLearner

__all__ = ["Pool", "PoolAdaptation", "PoolLearner", "PoolResult", "adapt", "drain", "run"]
