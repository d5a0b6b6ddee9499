"""The window: the only package, with app.py, that knows Qt."""
