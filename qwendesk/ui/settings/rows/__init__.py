"""One row for one option, of whatever kind, made from the settings table; the inspector uses the same."""
