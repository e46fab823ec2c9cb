"""What a receiver may conclude: `combine` from several copies, `intervals` from released draws, `statistics`
from noisy statistics that were published with copies, `classes` from public classes alone. Post-processing,
all of it.
"""
