"""Live readings while a model runs: memory, spill, speed, and spill remedies."""
