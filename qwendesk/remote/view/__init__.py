"""Widgets of the models on other servers."""
