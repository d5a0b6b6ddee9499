"""The app's own options, declared once each like those of the engine (see core/settings.py).

Kept in the user's settings file by services/settings.py. What needs a list or a file of its own (model folders,
profiles, the Hub's token) is kept elsewhere.
"""

from typing import Annotated, ClassVar, Literal

import msgspec

from qwendesk.core.settings import Setting

_LOOK, _NETWORK, _MEMORY, _STARTING = "Look", "Network", "Memory", "Starting and closing"
_ENGINE = "Engine"


class AppOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the app looks and behaves. Unknown keys of a newer version are passed over when the file is read."""

    needs_reload: ClassVar[bool] = False

    theme: Annotated[
        Literal["system", "dark", "light"],
        Setting("Theme", "", "Follow the system, or always dark or light.", _LOOK, basic=True),
    ] = "system"
    zoom_percent: Annotated[
        int,
        Setting("Text size", "", "Size of all text.", _LOOK, unit="%", low=80, high=160, basic=True),
    ] = 100
    offline: Annotated[
        bool,
        Setting(
            "Offline", "", "No connection at all: no search, no download, no check with the Hub.", _NETWORK, basic=True
        ),
    ] = False
    hub_endpoint: Annotated[
        str,
        Setting(
            "Hub address",
            "",
            "A mirror of Hugging Face; empty: HF_ENDPOINT, or Hugging Face itself. Your token "
            "is sent there and nowhere else.",
            _NETWORK,
            pattern=r"(https?://[^\s/]+\S*)?",
            example="an address like https://hf-mirror.example, or nothing",
        ),
    ] = ""
    proxy: Annotated[
        str,
        Setting(
            "Proxy",
            "",
            "URL of a proxy; empty: what the system says.",
            _NETWORK,
            pattern=r"(https?://[^\s/]+\S*)?",
            example="an address like http://proxy.example:3128, or nothing",
        ),
    ] = ""
    download_limit_mb_s: Annotated[
        int,
        Setting(
            "Download speed limit",
            "",
            "All downloads together; 0 is no limit.",
            _NETWORK,
            unit="MB/s",
            low=0,
            high=10_000,
        ),
    ] = 0
    reserve_gb: Annotated[
        float,
        Setting(
            "Reserve for games and other apps",
            "",
            "Video memory the app plans to leave free on each GPU.",
            _MEMORY,
            unit="GB",
            low=0,
            high=256,
            basic=True,
        ),
    ] = 1.0
    load_last_model: Annotated[
        bool,
        Setting("Load the last model at start", "", "Off starts without a model.", _STARTING, basic=True),
    ] = True
    eject_after_min: Annotated[
        int,
        Setting(
            "Eject when idle",
            "",
            "Free the memory after so many minutes without a question; 0 never.",
            _STARTING,
            unit="min",
            low=0,
            high=1_440,
        ),
    ] = 0
    engine: Annotated[
        str, Setting("Engine", "", "Name of the engine to use; empty takes the best one that runs here.", _ENGINE)
    ] = ""
