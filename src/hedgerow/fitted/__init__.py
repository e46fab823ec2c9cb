"""What a synthesizer holds when it is done: a priced posterior, or noisy statistics. Confidential.

Two mechanisms end here. What they share is `Finished`: what may leave is made once, as `Finished.release`,
and everything else stays. `weighted.Fitted` has the weighted posterior with its price, `noised.Noised` the
statistics that were released and the posterior given them, of one column or (`noised_chain`) of several.
"""

from hedgerow.fitted.finished import Finished
from hedgerow.fitted.noised import Noised, NoisedColumn
from hedgerow.fitted.noised_chain import NoisedChain
from hedgerow.fitted.weighted import Fitted

__all__ = ["Finished", "Fitted", "Noised", "NoisedChain", "NoisedColumn"]
