"""A conversation on screen: turns, Markdown, code, images, reasoning."""
