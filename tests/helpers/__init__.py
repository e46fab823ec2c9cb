"""What several rooms of the tests need: programs to sample, and a walk over all that an object can reach."""
