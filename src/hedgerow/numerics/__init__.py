"""Array code only: no tables, no standards, no privacy words."""
