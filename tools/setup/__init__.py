"""Makes the environment in .venv: `python3 -m tools.setup`. Standard library only, because it runs before the rest."""
