"""The commands, one module each; `main` chooses."""
