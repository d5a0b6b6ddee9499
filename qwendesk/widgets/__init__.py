"""Reusable widgets, theme, text and motion, independent of any feature.

How something looks
-------------------
A widget says what it is by its property `kind`; `widgets/stylesheet.py` styles each kind with roles of the theme, and
`resources/themes` gives the roles their colours. Text that a widget draws itself (a `TextPane`) takes its colour and
size from `current_theme()`.
"""
