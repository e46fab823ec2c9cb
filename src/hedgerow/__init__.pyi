"""Every public name of hedgerow, and where it lives: read by type checkers, and when a name is first used."""

import hedgerow.evidence.utility
import hedgerow.inference.survey
import hedgerow.report.plots

from . import datasets as datasets
from . import receive as receive
from . import weights as weights
from .cluster.connect import connect as connect
from .cluster.workers import Cluster as Cluster
from .comparison import Comparison as Comparison, compare as compare
from .errors import HedgerowError as HedgerowError, HedgerowWarning as HedgerowWarning
from .evidence.external import Assessment as Assessment, assess as assess
from .inference.combine import combine as combine
from .inference.classes import copies_from_classes as copies_from_classes
from .models.exact import Lognormal as Lognormal, Normal as Normal
from .models.families.family import Family as Family
from .models.prior import Prior as Prior
from .models.programs.program import Codes as Codes, Levels as Levels, Program as Program
from .privacy.censored import Censored as Censored
from .privacy.columns import Column as Column, Rules as Rules
from .privacy.guarantee import Guarantee as Guarantee, Release as Release
from .privacy.ranges import (
    Bounds as Bounds,
    Box as Box,
    Brackets as Brackets,
    Everywhere as Everywhere,
    Radius as Radius,
    Range as Range,
    Tail as Tail,
    Where as Where,
)
from .privacy.standards import (
    ADP as ADP,
    RangeAveraged as RangeAveraged,
    RangeTruncated as RangeTruncated,
    Standard as Standard,
    Unweighted as Unweighted,
)
from .privacy.strict import Margin as Margin, Strict as Strict
from .privacy.weights import (
    CapWeights as CapWeights,
    IdentificationWeights as IdentificationWeights,
    InverseWeights as InverseWeights,
    LinearWeights as LinearWeights,
    LogisticWeights as LogisticWeights,
    Reweighted as Reweighted,
    PlannedWeights as PlannedWeights,
    ScalarWeights as ScalarWeights,
    SoftmaxWeights as SoftmaxWeights,
)
from .progress import watch as watch
from .release.certificate import Certificate as Certificate
from .release.make import Made as Made, make_release as make_release
from .release.plan import About as About, Outputs as Outputs, Plan as Plan, Read as Read
from .release.received import intervals as intervals
from .release.report import write_report as write_report
from .release.sign import sign_release as sign_release
from .release.verify import Verified as Verified, verify_release as verify_release
from .synthesizer import Synthesizer as Synthesizer
from .tables.values import Declared as Declared

__version__: str
plot = hedgerow.report.plots
survey = hedgerow.inference.survey
utility = hedgerow.evidence.utility
