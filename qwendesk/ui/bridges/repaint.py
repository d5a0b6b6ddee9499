"""How often the window is told of what comes in small pieces."""

REPAINT_EVERY_MS = 30
"""Text and progress are handed on at most this often, however fast they come."""
