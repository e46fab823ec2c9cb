"""What is lost: the confidential table beside its copies.

    >>> import hedgerow as hr
    >>> table, copy = (hr.datasets.payroll(300, seed=seed) for seed in (1, 2))
    >>> hr.utility.compare_rows(table, [copy, copy])["copy"].tolist()
    ['1', '2', 'pooled', 'lowest', 'highest']
    >>> hr.utility.overlap((0.0, 4.0), (3.0, 5.0))  # of two intervals: (1/4 + 1/2)/2
    0.375

`columns`: distances, a few statistics, by groups too; `shapes` for the eye; `pairs`: rank correlations and
tables of two columns; `propensity`: whether a model can tell rows apart; `analyses`: regressions that users
will run. The last three take whole tables (`stack`), and `terms` of them. `overview` is all of it, for the
files of a release.

Confidential: everything here is computed from the data and covered by no price.
"""

from hedgerow.evidence.utility.analyses import Analysis as Analysis
from hedgerow.evidence.utility.analyses import compare_analyses as compare_analyses
from hedgerow.evidence.utility.analyses import overlap as overlap
from hedgerow.evidence.utility.columns import EcdfDistance as EcdfDistance
from hedgerow.evidence.utility.columns import compare_copies as compare_copies
from hedgerow.evidence.utility.columns import compare_kinds as compare_kinds
from hedgerow.evidence.utility.columns import ecdf_distance as ecdf_distance
from hedgerow.evidence.utility.columns import stack_columns as stack_columns
from hedgerow.evidence.utility.columns import statistics as statistics
from hedgerow.evidence.utility.columns import tabulate as tabulate
from hedgerow.evidence.utility.columns import unstack_columns as unstack_columns
from hedgerow.evidence.utility.groups import compare_groups as compare_groups
from hedgerow.evidence.utility.pairs import compare_associations as compare_associations
from hedgerow.evidence.utility.pairs import compare_two_way as compare_two_way
from hedgerow.evidence.utility.propensity import Propensity as Propensity
from hedgerow.evidence.utility.propensity import compare_rows as compare_rows
from hedgerow.evidence.utility.propensity import measure_propensity as measure_propensity
from hedgerow.evidence.utility.shapes import PLACES as PLACES
from hedgerow.evidence.utility.shapes import bin_shapes as bin_shapes
