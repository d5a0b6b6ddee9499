"""The notice of game mode, and its list of programs on the settings page."""
