"""A conversation drawn: turns, Markdown, code, pictures, thoughts."""
