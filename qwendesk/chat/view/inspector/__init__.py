"""The inspector's tabs for the open chat: its presets, its sampling values and its system prompt."""
