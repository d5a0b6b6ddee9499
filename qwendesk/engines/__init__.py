"""Installed engines, engine packs, trials, and loading and reloading a model."""
