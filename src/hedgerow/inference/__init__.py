"""What a receiver may conclude from released draws and copies: `intervals`. Post-processing, all of it."""
