"""Real programs that use QwenDesk's server: `python -m tools.clients`."""
