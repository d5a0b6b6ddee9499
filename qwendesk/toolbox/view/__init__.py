"""The tools in the window: their cards on the settings page."""
