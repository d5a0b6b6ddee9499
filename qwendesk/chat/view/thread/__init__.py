"""A conversation on screen: its turns, selecting and finding in them, tool calls and pictures."""
