"""The app's own options, declared like those of the engine (see core/settings.py).

settings/service.py stores them in the user's settings file. Model folders, profiles and the Hub token are stored
separately.
"""

from typing import Annotated, ClassVar, Literal

import msgspec

from qwendesk.core.settings import Setting
from qwendesk.core.units import GIB, MIB

# The sections of the settings page; `settings/view/settings_page.py` has their order.
_LOOK, _CHATS, _MODELS, _NETWORK, _SEARCH = "Appearance", "Chats", "Models", "Network", "Web search"
_GAMES, _STARTING, _SERVER, _UPDATES = "Games", "Start", "Server", "Updates"

GameAction = Literal["unload", "experts", "keep"]
"""The action for the model while a program runs: unload it, move its experts to the CPU, or leave it."""


class ProgramRule(msgspec.Struct, frozen=True):
    """The action for the model while one program runs."""

    name: str
    """File name of the program, with or without ".exe"."""
    action: GameAction


class AppOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the app looks and behaves. Unknown keys, from a newer version, are ignored when the file is read."""

    needs_reload: ClassVar[bool] = False

    theme: Annotated[
        Literal["system", "dark", "light", "contrast"],
        Setting(
            "Theme",
            "",
            "How the window looks.",
            _LOOK,
            basic=True,
            choice_help={
                "system": "Follows your system's appearance.",
                "dark": "Always dark.",
                "light": "Always light.",
                "contrast": "High contrast, dark or light like your system.",
            },
        ),
    ] = "system"
    density: Annotated[
        Literal["comfortable", "compact"],
        Setting("Density", "", "Compact reduces spacing. The text size stays the same.", _LOOK, basic=True),
    ] = "comfortable"
    language: Annotated[
        str,
        Setting(
            "Language",
            "",
            "Language of the window. Takes effect after a restart.",
            _LOOK,
            pattern=r"([a-z]{2,3}(_[A-Z][A-Za-z]{1,3})?)?",
            example="a code such as en or de, or nothing",
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
            "Turns off animations and the blinking of the text cursor. Follow the system works on Windows, macOS, "
            "GNOME and KDE.",
            _LOOK,
        ),
    ] = "system"
    think_in_new_chats: Annotated[
        bool,
        Setting(
            "Think in new chats",
            "",
            "Whether a new chat starts with thinking on. You can change it in each chat.",
            _CHATS,
            basic=True,
        ),
    ] = True
    prepare_ahead: Annotated[
        bool,
        Setting(
            "Prepare while you type",
            "",
            "Process pictures, documents and the last answer while you read and type, so that your next answer starts "
            "sooner. Never on battery.",
            _CHATS,
        ),
    ] = True
    chat_states_gb: Annotated[
        int,
        Setting(
            "Keep chats ready on disk",
            "",
            "How much disk space the engine's memory of your last chats may take, so that they continue at once after "
            "a restart or an unload. The oldest is deleted first. Incognito chats are never kept. 0 keeps none.",
            _CHATS,
            unit="GB",
            low=0,
            high=1_000,
        ),
    ] = 8
    ffmpeg_folder: Annotated[
        str,
        Setting(
            "ffmpeg folder",
            "",
            "Folder with the programs ffmpeg and ffprobe, which open video files. If empty, they are looked for where "
            "programs are installed. Animated GIF, WebP and PNG pictures open without them.",
            _CHATS,
        ),
    ] = ""
    offline: Annotated[
        bool,
        Setting(
            "Offline",
            "",
            "Never use the internet: no search, downloads or update checks. Servers in your network still work.",
            _NETWORK,
            basic=True,
        ),
    ] = False
    look_up_weekly: Annotated[
        bool,
        Setting(
            "Check for updates to model files weekly",
            "",
            "Once a week, ask Hugging Face which files of the models on For this PC are new, replaced or removed, and "
            "which new models their uploaders have, and GitHub for a newer llama.cpp. Not on a connection that the "
            "system calls metered.",
            _UPDATES,
            basic=True,
        ),
    ] = False
    hub_endpoint: Annotated[
        str,
        Setting(
            "Hub address",
            "",
            "Address of a Hugging Face mirror. If empty, HF_ENDPOINT or Hugging Face itself. Your token is sent "
            "only there.",
            _NETWORK,
            pattern=r"(https?://[^\s/]+\S*)?",
            example="an address such as https://hf-mirror.example, or nothing",
        ),
    ] = ""
    proxy: Annotated[
        str,
        Setting(
            "Proxy",
            "",
            "Address of a proxy. If empty, the system's proxy settings.",
            _NETWORK,
            pattern=r"(https?://[^\s/]+\S*)?",
            example="an address such as http://proxy.example:3128, or nothing",
        ),
    ] = ""
    download_limit_mb_s: Annotated[
        int,
        Setting(
            "Download speed limit",
            "",
            "For all downloads together. 0 is unlimited.",
            _NETWORK,
            unit="MB/s",
            low=0,
            high=10_000,
        ),
    ] = 0
    search_service: Annotated[
        Literal["duckduckgo", "brave", "searxng"],
        Setting(
            "Search service",
            "",
            "What the tool Web search asks. The tool is off until you turn it on in a chat, and shows you each search.",
            _SEARCH,
            basic=True,
            choice_help={
                "duckduckgo": "DuckDuckGo, without a key. It limits how often you can search.",
                "brave": "Brave Search, with a key of yours. Enter it below.",
                "searxng": "A SearXNG server: yours, or one that you trust. Enter its address below.",
            },
        ),
    ] = "duckduckgo"
    searxng_address: Annotated[
        str,
        Setting(
            "SearXNG address",
            "",
            "Address of the server. It may be on this PC or in your network, and must answer in JSON (search.formats "
            "in its settings.yml).",
            _SEARCH,
            pattern=r"(https?://[^\s/@]+[^\s@]*)?",
            example="an address such as http://localhost:8080, or nothing",
            basic=True,
        ),
    ] = ""
    reserve_gb: Annotated[
        float,
        Setting(
            "Reserve for games and other apps",
            "",
            "How much VRAM to leave free on each GPU.",
            _MODELS,
            unit="GB",
            low=0,
            high=256,
            basic=True,
        ),
    ] = 1.0
    game_mode: Annotated[
        bool,
        Setting(
            "Make room for games",
            "",
            "Take the model off the graphics card while another program needs it. A running answer ends first, and "
            "your chats are kept, so nothing is processed again afterwards.",
            _GAMES,
            basic=True,
        ),
    ] = True
    game_trigger: Annotated[
        Literal["growing", "full_screen", "listed"],
        Setting(
            "Which programs count",
            "",
            "Which programs the model makes room for.",
            _GAMES,
            basic=True,
            choice_help={
                "growing": "Listed programs, and any that took 1 GB of VRAM (0.5 GB in full screen) since the model "
                "was loaded and left less than 0.5 GB free. Not while QwenDesk is in front.",
                "full_screen": "Listed programs, and one in full screen that took 0.5 GB of VRAM since the model was "
                "loaded and left less than 0.5 GB free. Not while QwenDesk is in front.",
                "listed": "Only the programs in the list below.",
            },
        ),
    ] = "growing"
    game_action: Annotated[
        Literal["unload", "experts"],
        Setting(
            "What the model does",
            "",
            "What happens to the model. The list below can say something else for a program.",
            _GAMES,
            basic=True,
            choice_help={
                "unload": "The model is unloaded, and all its memory is free. Questions wait, unless you choose Load "
                "anyway.",
                "experts": "The experts of the model move into RAM, so you can still chat, more slowly. The model is "
                "unloaded if it has no experts on the GPU, if RAM is too short for them, or if that isn't enough.",
            },
        ),
    ] = "unload"
    game_return: Annotated[
        Literal["next_message", "automatic"],
        Setting(
            "When the program has ended",
            "",
            "When an unloaded model is loaded again.",
            _GAMES,
            basic=True,
            choice_help={
                "next_message": "Your next message loads the model. A game that you restart isn't slowed down by a "
                "load.",
                "automatic": "The model loads a few seconds after the program has ended.",
            },
        ),
    ] = "next_message"
    game_programs: tuple[ProgramRule, ...] = ()
    """The list of programs with a rule of their own. The settings page edits it in a card of its own."""
    load_last_model: Annotated[
        bool,
        Setting(
            "Load the last model at start", "", "If off, QwenDesk starts with no model loaded.", _STARTING, basic=True
        ),
    ] = True
    keep_in_tray: Annotated[
        bool,
        Setting(
            "Stay in the tray when the window is closed",
            "",
            "The model stays loaded, and the tray icon opens the window again. If off, closing the window quits "
            "QwenDesk. Desktops without a tray always quit.",
            _STARTING,
            basic=True,
        ),
    ] = False
    eject_after_min: Annotated[
        int,
        Setting(
            "Eject when idle",
            "",
            "Unload the model after this many minutes without use. Your next message loads it again. 0 is never.",
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
            "The engine that runs models. Choose one on the Engine page.",
            _MODELS,
            page="engine",
        ),
    ] = ""
    gpu_engine: Annotated[
        Literal["ask", "automatic", "never"],
        Setting(
            "Engine for NVIDIA cards",
            "",
            "Whether to download NVIDIA's CUDA engine when this PC can use it.",
            _MODELS,
            choice_help={
                "ask": "Offers it after each start. If you run QwenDesk from its source code, run.cmd downloads it, "
                "unless you chose another engine there.",
                "automatic": "Downloads it in the background, also after an update of QwenDesk. Not on a connection "
                "that the system calls metered.",
                "never": "Never downloads or offers it.",
            },
            basic=True,
        ),
    ] = "ask"
    serve: Annotated[
        bool,
        Setting(
            "Serve other programs",
            "",
            "Programs such as Claude Code, Codex and opencode use the loaded model through a server on this PC. They "
            "need its key. The Server page has its address and the commands that start programs with it.",
            _SERVER,
            page="server",
            basic=True,
        ),
    ] = False
    serve_any_model: Annotated[
        bool,
        Setting(
            "Load the model that a program asks for",
            "",
            "A program can name any model on this PC, which is loaded in place of yours. Yours comes back with your "
            "next message. Nothing is swapped while you get an answer, measure or play. If off, every request gets "
            "the loaded model.",
            _SERVER,
            page="server",
        ),
    ] = True
    server_port: Annotated[
        int,
        Setting(
            "Port of the server",
            "",
            "Other programs reach the server there. Change it on the Server page if another program has it.",
            _SERVER,
            low=1024,
            high=65_534,
            page="server",
        ),
    ] = 8765
    serve_network: Annotated[
        bool,
        Setting(
            "Let other PCs in your network in",
            "",
            "They reach the server at the next port, encrypted (TLS), with the same key.",
            _SERVER,
            page="server",
        ),
    ] = False
    # Ollama's OLLAMA_ORIGINS and llama-server's --cors-origins; LM Studio's "Enable CORS" allows all.
    server_origins: Annotated[
        tuple[str, ...],
        Setting(
            "Allowed web origins",
            "",
            "Addresses of web pages and browser extensions that may use the server (CORS, OLLAMA_ORIGINS). They need "
            "its key too. * allows all.",
            _SERVER,
            pattern=r"\*|[A-Za-z][A-Za-z0-9+.-]*://[^\s/]+/?",
            example="addresses such as http://localhost:3000, without a path",
            placeholder="http://localhost:3000; https://example.com",
            basic=True,
        ),
    ] = ()

    @property
    def reserve_bytes(self) -> int:
        """Return what plans leave free on each GPU."""
        return round(self.reserve_gb * GIB)

    @property
    def download_limit_bytes_per_s(self) -> int:
        """Return the limit of all downloads together; 0 means none."""
        return self.download_limit_mb_s * MIB
