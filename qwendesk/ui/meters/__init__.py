"""Memory, speed and state at the bottom of the window."""
