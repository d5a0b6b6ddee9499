"""The folders of a user who exists only in a test."""

from pathlib import Path

_FOLDERS = {
    "HOME": "home",
    "USERPROFILE": "home",
    "APPDATA": "home/AppData/Roaming",
    "LOCALAPPDATA": "home/AppData/Local",
    # platformdirs asks Windows for these two folders, not the environment, unless it has these variables.
    "WIN_PD_OVERRIDE_APPDATA": "home/AppData/Roaming",
    "WIN_PD_OVERRIDE_LOCAL_APPDATA": "home/AppData/Local",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_CACHE_HOME": "cache",
    "XDG_STATE_HOME": "state",
    "XDG_RUNTIME_DIR": "runtime",
}


def user_variables(root: Path) -> dict[str, str]:
    """Return the environment variables that put every folder of a user below `root`, on any system."""
    return {variable: str(root / folder) for variable, folder in _FOLDERS.items()}
