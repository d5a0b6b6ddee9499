"""QwenDesk: run Qwen 3.5, 3.6 and 3.8 at home, in a window."""

__version__ = "0.1.0"
