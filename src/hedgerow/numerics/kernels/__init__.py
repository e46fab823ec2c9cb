"""The inner loops: `scoring_numba` on processors, `scoring_jax` on GPUs, with polynomials in `coefficients`.

`renyi` has the divergences between a record's two posteriors, `compiling` what compiled loops share.
"""
