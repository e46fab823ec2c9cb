"""What all records of a unit, a household or firm, do to a fit together (docs/maths.md, "Units").

A unit's records are withheld together. Its neighbour is found by taking all of them out of the posterior at
once: for a regression by the singular values of its rows, for cells by subtracting powers. No bound over the
rows one by one is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from hedgerow.arrays import Array, PerRecord
from hedgerow.models.base import Influence, Model
from hedgerow.models.chain import Chain, there
from hedgerow.models.exact import Regression
from hedgerow.models.families.dirichlet import Dirichlet
from hedgerow.numerics.blocks import BlockNeighbours, CellBlockNeighbours
from hedgerow.numerics.dirichlet import SummedNeighbours
from hedgerow.numerics.renyi import Neighbours
from hedgerow.tables.design import Design

Codes = NDArray[np.int64]
_LOG_2PI = float(np.log(2 * np.pi))
_REFIT = 1e-3  # where less is left of a fit without a unit, it is made anew
_DIGITS = 1e-8  # and where not even this is left, nothing is known of the loss


@dataclass(frozen=True, repr=False)
class UnitInfluence(Influence):
    """The fit without a unit; every record has the figures of its unit, and its own leverage and pull."""

    model: Model
    design: Design
    power: PerRecord
    unit: Codes
    alone: Influence

    @property
    def leverage(self) -> PerRecord:  # type: ignore[override]  # derived, where others have a field
        return self.alone.leverage

    @property
    def pull(self) -> PerRecord:  # type: ignore[override]  # likewise
        return self.alone.pull

    def loss_constant(self, share: PerRecord) -> PerRecord:
        return np.sum([constant for _, constant in self._links(share)], axis=0)

    def neighbours(self, share: PerRecord) -> Neighbours:
        found = [pairs for pairs, _ in self._links(share)]
        return found[0] if len(found) == 1 else SummedNeighbours(found)

    def _links(self, share: PerRecord) -> Iterator[tuple[Neighbours, PerRecord]]:
        models = self.model.models if isinstance(self.model, Chain) else (self.model,)
        for model, link in zip(models, self.design.links, strict=True):
            powers = there(link, self.power), there(link, share)
            if isinstance(model, Dirichlet):
                cells = _take_from_cells(model, link, *powers, self.unit)
                yield cells, cells.loss_constant()[self.unit]
            elif isinstance(model, Regression):
                blocks = _take_from_regression(model, link, *powers, self.unit)
                fixed = powers[1] * (model.jacobian(link) - _LOG_2PI / 2)
                constant = blocks.loss_constant() + np.bincount(self.unit, fixed)
                lost = ~np.isfinite(constant) | (blocks.sizes.max(axis=1) > 1 / _DIGITS)
                yield blocks, np.where(lost, -np.inf, constant)[self.unit]


def _take_from_regression(
    model: Regression, design: Design, power: PerRecord, share: PerRecord, unit: Codes
) -> BlockNeighbours:
    """Each unit's neighbour, from one fit; a unit that decides nearly all of it has a fit of its own."""
    posterior = model.posterior(design, power)
    root = np.sqrt(share)
    rows = solve_triangular(posterior.factor, design.matrix.T, trans=1).T * root[:, None]
    response = model.response(design.values)
    residual = (response - design.matrix @ posterior.mean) * root
    count, width = int(unit.max()) + 1, design.matrix.shape[1]
    sizes, squared = np.zeros((2, count, width + 1))
    order = np.argsort(unit, kind="stable")
    many = np.bincount(unit, minlength=count)
    first = np.cumsum(many) - many
    for size in np.unique(many[many > 0]):
        own = np.flatnonzero(many == size)
        members = order[first[own][:, None] + np.arange(size)]
        values, found = _directions(rows[members], residual[members])
        sizes[own, : values.shape[1]], squared[own, : found.shape[1]] = values, found
    left = 1 - sizes
    added = np.bincount(unit, share, minlength=count).astype(np.float64)
    with np.errstate(all="ignore"):
        rate = posterior.rate - (squared / left).sum(axis=1) / 2
        hard = np.flatnonzero(~((left > _REFIT).all(axis=1) & (rate > _REFIT * posterior.rate)))
        sizes, squared = sizes / left, squared / left**2
    for one in hard:
        members = order[first[one] : first[one] + many[one]]
        others = power.copy()
        others[members] = np.maximum(others[members] - share[members], 0.0)
        without = model.posterior(design, others)
        block = solve_triangular(without.factor, design.matrix[members].T, trans=1).T * root[members, None]
        own_residual = (response[members] - design.matrix[members] @ without.mean) * root[members]
        values, found = _directions(block[None], own_residual[None])
        sizes[one], squared[one] = 0.0, 0.0
        sizes[one, : values.shape[1]], squared[one, : found.shape[1]] = values[0], found[0]
        rate[one] = without.rate
    return BlockNeighbours(added, sizes, squared, posterior.shape - added / 2, rate, unit)


def _directions(rows: Array, residual: Array) -> tuple[Array, Array]:
    """Squared singular values of some units' rows, and squared residuals along them, the rest last."""
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    along = np.einsum("urk,ur->uk", left, residual) ** 2
    rest = np.maximum((residual**2).sum(axis=1) - along.sum(axis=1), 0.0)
    return np.append(values**2, np.zeros((len(rows), 1)), axis=1), np.append(along, rest[:, None], axis=1)


def _take_from_cells(
    model: Dirichlet, design: Design, power: PerRecord, share: PerRecord, unit: Codes
) -> CellBlockNeighbours:
    """Each unit's neighbour: its powers less in each of its classes and cells."""
    full = model.concentrations(design, power)
    cells, classes = model.places_of(design)
    terms = []
    own = 1.0, cells * full.shape[1] + classes, full.ravel()
    for sign, place, base in (own, (-1.0, cells, full.sum(axis=1))):
        pairs, member = np.unique(np.column_stack([unit, place]), axis=0, return_inverse=True)
        added = np.bincount(member.ravel(), share, minlength=len(pairs)).astype(np.float64)
        terms.append((np.full(len(pairs), sign), base[pairs[:, 1]] - added, added, pairs[:, 0]))
    signs, bases, powers, owners = (np.concatenate(part) for part in zip(*terms, strict=True))
    return CellBlockNeighbours(signs, bases, powers, owners, unit, np.bincount(unit, share)[unit])
