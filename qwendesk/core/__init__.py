"""Values and helpers shared by all packages; imports no other package of QwenDesk.

What an option is by default
----------------------------
The value after an option in `core/options.py`, `core/generation_options.py` or `core/app_options.py` is its default,
and `python -m tools.settings_docs` writes it into the documents. A load option at its default counts as not chosen by
the user: the planner then decides it by the chosen aim. Sampling options come from the preset (`core/presets.py`); the
default is used for what the preset leaves out.
"""
