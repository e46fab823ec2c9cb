"""What copies keep of the confidential table. Confidential: it is computed from both."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.arrays import PerLink, PerRecord, columns_of
from hedgerow.errors import NotFittedError
from hedgerow.evidence.utility import (
    Analysis,
    bin_shapes,
    compare_associations,
    compare_copies,
    compare_kinds,
    stack_columns,
)
from hedgerow.evidence.utility.analyses import COMPARED, analyses_of_copies
from hedgerow.evidence.utility.groups import GROUPED, groups_of_copies
from hedgerow.evidence.utility.overview import write_overview
from hedgerow.evidence.utility.pairs import TWO_WAY, two_way_of_copies
from hedgerow.evidence.utility.propensity import MEASURES, PERMUTATIONS, By, rows_of_copies
from hedgerow.evidence.utility.stack import Rows, Stack, pooled_columns, read_weights, stack_tables
from hedgerow.fitted import Finished
from hedgerow.privacy.settings import Settings
from hedgerow.tables.table import Table


class Utility:
    """The copies of a finished fit beside the confidential table."""

    settings: Settings
    _fitted: Finished | None

    def utility(self) -> Any:
        """How the copies compare with the confidential outcome: tidy, and confidential.

        One row per copy and statistic, then the mean over copies and of several the lowest and highest.
        """
        return self.like(self.utility_columns())

    def utility_columns(self) -> dict[str, list[object]]:
        """The columns of `utility`."""
        by_column = self.utility_by_column()
        return stack_columns(by_column) if self.settings.several else by_column[self.outcome_name]

    def utility_by_column(self) -> dict[str, dict[str, list[object]]]:
        """`utility_columns` by protected column: of it where it was used, or all of it if nowhere.

        Of a column with kinds of cells, first the share of each kind, then the amounts; of a column that is
        a share of another, the shares.
        """
        originals, copies, weights = self.originals, self.copies_by_column(), self._weights_by_column()
        compared = dict[str, dict[str, list[object]]]()
        for link in self.settings.links:
            values, made = originals[link.outcome], copies[link.outcome]
            if link.role == "kind":
                compared[link.column.outcome] = compare_kinds(values, made, link.column.kinds)
            elif all(len(part) for part in made):
                statistics = compare_copies(values, made, weights=weights.get(link.outcome))
                for name, cells in statistics.items():
                    compared.setdefault(link.column.outcome, {}).setdefault(name, []).extend(cells)
        return compared

    def associations(self) -> Any:
        """Rank correlations of protected columns, with each other and with public numbers; confidential.

        One row per pair and copy, the original's beside the copy's, then mean, lowest and highest. Columns of
        classes without an order are left out.
        """
        done = self._done()
        ordered = [
            (place, link)
            for place, (link, model) in enumerate(zip(done.design.links, done.settings.models, strict=True))
            if link.levels is None or len(link.levels) == 2 or model.name != "categorical"
        ]
        protected = {link.outcome: link.gappy_values for _, link in ordered}
        hidden = (*self.settings.protected, *done.left_out)
        public = {
            name: done.table.numbers_or_flags(name)
            for name in done.table.number_columns()
            if name not in hidden
        }
        copies = [
            {link.outcome: columns_of(copy)[place] for place, link in ordered}
            for copy in self.copied_outcomes()
        ]
        return self.like(compare_associations(protected, copies, public))

    def propensity(self, *, by: By = "main", permutations: int = PERMUTATIONS) -> Any:
        """Whether a model can tell copied rows from real ones: pMSE, its ratio S_pMSE, and others.

        `by`: a logistic regression on all columns ("main"), with products of two ("pairs"), or a tree
        ("cart", needs scikit-learn). One row per copy, then mean, lowest and highest; confidential.
        S_pMSE is 1 where nothing was lost and about 2 for one posterior draw (`evidence.utility`).
        """
        rows = rows_of_copies(self.stack(), by=by, permutations=permutations)
        return self._like_rows(rows, MEASURES)

    def analyses(self, analyses: Sequence[str | Analysis]) -> Any:
        """Regressions on the original and on each copy: interval overlap and standardised difference.

        `analyses` are formulas, or `hr.utility.Analysis(formula, family)`. One row per coefficient and copy,
        then mean, lowest and highest; confidential.
        """
        rows = analyses_of_copies(self.stack(), analyses, self.settings.design_weight)
        return self._like_rows(rows, COMPARED)

    def two_way(self) -> Any:
        """Tables of two columns, one of them protected: total variation distance, VW and its ratio.

        One row per pair and copy, then mean, lowest and highest; confidential.
        """
        stack, weight = self.stack(), self.settings.design_weight
        weights = None if weight is None else read_weights(stack, weight)
        return self._like_rows(two_way_of_copies(stack, weights, [weight] if weight else ()), TWO_WAY)

    def utility_by_group(self, by: str) -> Any:
        """Distances, means and quantiles of protected columns within groups of a public one; confidential."""
        rows = groups_of_copies(self.stack(), by, self.settings.design_weight)
        return self._like_rows(rows, GROUPED)

    def utility_overview(
        self, analyses: Sequence[Analysis] = (), *, most: int | None = None
    ) -> dict[str, Any]:
        """All of these in plain numbers (`evidence.utility.overview`), from `most` rows at most."""
        return write_overview(self.stack(most=most), analyses, self.settings.design_weight)

    def stack(self, *, most: int | None = None) -> Stack:
        """The released columns of the confidential table and, below them, of each copy.

        Without rows in which a gap of a protected column was withheld: copies have a value there.
        """
        done, asked = self._done(), self.settings
        used = np.ones(done.table.rows, dtype=np.bool_)
        for column in asked.columns:
            if column.missing in ("refused", "withheld"):
                used &= done.table.raw_cells(column.outcome)[1]
        used = used if used.any() else ~used
        if most is not None and done.table.rows > most:
            used &= np.arange(done.table.rows) % -(-done.table.rows // most) == 0
        levels = [link.outcome for link in done.design.links if link.levels is not None]
        return stack_tables(
            done.table.native, done.release.tables, codes=asked.codes, rows=used,
            protected=asked.protected,
            classes=[*levels, *(name for link in done.design.links for name in link.classes)],
        )  # fmt: skip

    def shape_columns(self) -> dict[str, Any]:
        """The shares of outcome and copies in each of some bins (`evidence.utility.bin_shapes`).

        Of several protected columns below each other, with the column's name before the rest.
        """
        by_column = self.shapes_by_column()
        return stack_columns(by_column) if self.settings.several else by_column[self.outcome_name]

    def shapes_by_column(self) -> dict[str, dict[str, Any]]:
        """`shape_columns` of each protected column, by its name."""
        copies = self.copies_by_column()
        levels = self.levels_by_column
        return {
            name: bin_shapes(values, {self.copies_label: copies[name]}, levels[name])
            for name, values in self.originals.items()
            if all(len(part) for part in copies[name])
        }

    @property
    def originals(self) -> dict[str, PerRecord]:
        """The confidential values of each protected column where they were used; all if nowhere."""
        done = self._done()
        used = {link.outcome: link.present_in(done.present) for link in done.design.links}
        return {
            link.outcome: link.values[used[link.outcome]] if used[link.outcome].any() else link.values
            for link in done.design.links
        }

    def copies_by_column(self) -> dict[str, list[PerRecord]]:
        """Each protected column in every copy, where it has values: numbers or the places of labels."""
        copies = [columns_of(copy) for copy in self.copied_outcomes()]
        links = enumerate(self._done().design.links)
        return {
            link.outcome: [copy[place][~np.isnan(copy[place])] for copy in copies] for place, link in links
        }

    @property
    def levels_by_column(self) -> dict[str, tuple[Any, ...] | None]:
        """The labels of each protected column whose values are places of labels."""
        return {link.outcome: link.levels for link in self._done().design.links}

    def copied_outcomes(self) -> list[PerLink]:
        """What is protected of every copy, as numbers or the places of labels."""
        return self._done().copied_outcomes

    @property
    def copies_label(self) -> str:
        """What the copies are called in tables."""
        return "copy" if self.settings.copies == 1 else "copies"

    @property
    def outcome_name(self) -> str:
        """The protected column."""
        return self._done().design.outcome

    def like(self, columns: Mapping[str, Any]) -> Any:
        """A dataframe of the kind that was fitted."""
        return self._done().table.like(columns)

    def _weights_by_column(self) -> dict[str, list[PerRecord]]:
        """The survey weights of `originals` and of `copies_by_column`, but for those of the weight itself."""
        name = self.settings.design_weight
        if name is None:
            return {}
        done = self._done()
        tables = [done.table, *map(Table.of, done.release.tables)]
        weights = [table.numbers(name) for table in tables]
        copies = [columns_of(copy) for copy in self.copied_outcomes()]
        by_column = {}
        for place, link in enumerate(done.design.links):
            if link.outcome == name:
                continue
            used = link.present_in(done.present)
            own = weights[0][used] if used.any() else weights[0]
            made = [weight[~np.isnan(copy[place])] for weight, copy in zip(weights[1:], copies, strict=True)]
            by_column[link.outcome] = [own, *made]
        return by_column

    def _like_rows(self, rows: Rows, measures: Sequence[str]) -> Any:
        return self.like(pooled_columns(rows, measures))

    def _done(self) -> Finished:
        if self._fitted is None:
            raise NotFittedError("Not fitted yet: call fit(data) first.")
        return self._fitted
