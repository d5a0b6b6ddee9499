"""The meter bar at the bottom of the window, its history and the spill banner."""
