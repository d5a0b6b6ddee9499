"""QwenDesk: run Qwen 3.5 and 3.6 at home, in a window."""

__version__ = "0.1.0"
