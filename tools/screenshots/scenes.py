"""Which pictures there are, in sets that share a window."""

from collections.abc import Mapping
from typing import Final

SETS: Final[Mapping[str, tuple[str, ...]]] = {
    "demo-dark": ("chat-dark", "thinking", "clip"),
    "demo-light": ("chat-light",),
    "start": ("first-start", "for-this-pc"),
    "files": ("flagged",),
    "gaming": ("meter", "spill", "engine", "context"),
    "inspector": ("options", "paste"),
    "server": ("server",),
    "remote": ("remote-chat", "remote-engines"),
}
"""Set: the pictures that it takes, by their file's name without ".png"."""
