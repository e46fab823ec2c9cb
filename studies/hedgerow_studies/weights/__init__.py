"""Which weights, risk and bound lose least at a given ε (docs/weights.md): `study`, then `report`."""
