"""Leaves as if others had them: tasks that travel, and machines that round otherwise."""

import cloudpickle
import numpy as np

from hedgerow.tables.leaves import Held


class Elsewhere:
    """Tasks travel as bytes, and the last leaf is done first."""

    def map(self, task, leaves, which):
        there = {leaf: cloudpickle.loads(cloudpickle.dumps(task))(leaves, leaf) for leaf in [*which][::-1]}
        yield from (cloudpickle.loads(cloudpickle.dumps(there[leaf])) for leaf in which)


class Rounding(Held):
    """Leaves on another machine, where predictors come out a little different."""

    def design(self, leaf):
        part, random = super().design(leaf), np.random.default_rng(leaf)
        for link in part.links:
            off = random.uniform(-1e-4, 1e-4, link.matrix.shape)
            vars(link)["matrix"] = link.matrix * (1 + off)
        return part
