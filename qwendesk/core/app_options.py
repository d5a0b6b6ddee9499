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
        Literal["system", "dark", "light", "contrast"],
        Setting(
            "Theme",
            "",
            "As the system: dark, light or high contrast, as it asks. High contrast itself is dark or light as the "
            "system is.",
            _LOOK,
            basic=True,
        ),
    ] = "system"
    density: Annotated[
        Literal["comfortable", "compact"],
        Setting("Density", "", "Compact puts rows and gaps closer together; text keeps its size.", _LOOK, basic=True),
    ] = "comfortable"
    language: Annotated[
        str,
        Setting(
            "Language",
            "",
            "Language of the window. A change holds from the next start.",
            _LOOK,
            pattern=r"([a-z]{2,3}(_[A-Z][A-Za-z]{1,3})?)?",
            example="a code like en or de, or nothing",
            basic=True,
        ),
    ] = ""
    zoom_percent: Annotated[
        int,
        Setting("Text size", "", "Size of all text.", _LOOK, unit="%", low=80, high=160, basic=True),
    ] = 100
    reduced_motion: Annotated[
        Literal["system", "on", "off"],
        Setting(
            "Reduced motion",
            "",
            "On: switches do not slide, menus do not fade and the text cursor does not blink. As the system: known on "
            "Windows, macOS, GNOME and KDE; on other desktops it is off.",
            _LOOK,
        ),
    ] = "system"
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
    keep_in_tray: Annotated[
        bool,
        Setting(
            "Stay in the tray when the window is closed",
            "",
            "Off: closing the window ends the app and frees the memory. On: the model stays loaded, and the icon in "
            "the tray opens the window again. Where the desktop has no tray, closing always ends the app.",
            _STARTING,
            basic=True,
        ),
    ] = False
    eject_after_min: Annotated[
        int,
        Setting(
            "Eject when idle",
            "",
            "Free the memory after so many minutes without a question; the next one loads it again. 0 never.",
            _STARTING,
            unit="min",
            low=0,
            high=1_440,
        ),
    ] = 0
    engine: Annotated[
        str,
        Setting(
            "Engine",
            "",
            "What runs the models: the best one for this PC, unless you choose another on the Engine page.",
            _ENGINE,
            page="engine",
        ),
    ] = ""
