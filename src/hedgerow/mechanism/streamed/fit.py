"""The door: a table leaf by leaf, weighted, priced and calibrated, and what is known of it afterwards.

    fit = stream_weighted(settings, leaves, key=key, workers=Here())
    fit.certified, fit.scale

Formal guarantee: the fit is the one that `Synthesizer.fit` makes of the same table in memory, with the same
key: the same draws, scale, prices and statement, so that the same may be said of it.
"""

from dataclasses import dataclass

from hedgerow.arrays import Confidential
from hedgerow.mechanism.calibrate import CALIBRATING, expected_fits
from hedgerow.mechanism.copies import choose_draws
from hedgerow.mechanism.streamed.account import Account
from hedgerow.mechanism.streamed.leaf import Overview
from hedgerow.mechanism.streamed.merged import Merged
from hedgerow.mechanism.streamed.run import PricedFit, Runner
from hedgerow.mechanism.streamed.support import check_streamed
from hedgerow.mechanism.streamed.weigh import begin_streamed, weigh_streamed
from hedgerow.models.base import Health, Parameters
from hedgerow.privacy.bounds import Statement
from hedgerow.privacy.settings import Settings
from hedgerow.progress import job, phase
from hedgerow.randomness import Key
from hedgerow.tables.leaves import Leaves
from hedgerow.threads import Workers, one_blas_thread


@dataclass(frozen=True, repr=False)
class StreamedFit(Confidential):
    """The fit that is released; nothing in it grows with the number of records."""

    overview: Overview
    key: Key
    records: int
    plain: Merged  # the unweighted posterior
    priced: PricedFit
    account: Account

    @property
    def settings(self) -> Settings:
        """What was asked for."""
        return self.overview.settings

    @property
    def scale(self) -> float:
        """What the weights were multiplied with to meet the target."""
        return self.priced.scale

    @property
    def certified(self) -> float:
        """What the target is compared with."""
        return self.priced.certified

    @property
    def epsilon(self) -> float:
        """The price of one copy under the chosen bound."""
        return self.account.own.epsilon

    @property
    def total_epsilon(self) -> float:
        """The price of all copies."""
        return self.account.own.total

    @property
    def statement(self) -> Statement:
        """How far draws carry the claim."""
        return self.priced.statement

    @property
    def parameters(self) -> Parameters:
        """The draws of the fit."""
        return self.priced.merged.parameters

    @property
    def health(self) -> Health:
        """Whether these draws can be trusted."""
        return self.priced.merged.health

    @property
    def released(self) -> list[Parameters]:
        """The draws behind the copies, one each."""
        return choose_draws(self.settings, self.parameters, key=self.key.child("release"))


@one_blas_thread()
def stream_weighted(settings: Settings, leaves: Leaves, *, key: Key, workers: Workers) -> StreamedFit:
    """Fit, weigh, refit, calibrate and price a table that is read leaf by leaf."""
    check_streamed(settings)
    with job(expected_fits(settings)):
        overview, plain = begin_streamed(settings, leaves, workers, key=key)
        runner = Runner(overview, leaves, workers)
        with phase(CALIBRATING):
            weigh_streamed(runner, key=key)
            accounted = runner.finish(key)
    return StreamedFit(overview, key, leaves.records, plain, accounted.priced, accounted.account)
