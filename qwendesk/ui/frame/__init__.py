"""The window around the pages: rail, top bar, actions."""
