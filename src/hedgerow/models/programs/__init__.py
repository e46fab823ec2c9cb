"""Models without a closed form, sampled by NUTS: NumPyro programs, a user's own and those of the families."""
