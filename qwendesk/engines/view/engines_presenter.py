"""Shows the engines of this PC and the packs to download, and does what the user chooses."""

import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from qwendesk.core.engine_abi import build_number
from qwendesk.core.engine_manifest import MANIFEST_NAME, Backend
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_sentences, tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.pack_file import PackFile, pack_facts
from qwendesk.engines.pack_fit import fits, is_compiled_by_driver, known_regressions, obstacle, packs_for, unserved
from qwendesk.engines.packs import PackState
from qwendesk.engines.services import InstalledEngines
from qwendesk.engines.trial import EngineTrial
from qwendesk.engines.view import row_texts
from qwendesk.engines.view.engine_list import EngineList, PackRow
from qwendesk.engines.view.row_texts import EngineLine, PackLine
from qwendesk.hardware.snapshot import GpuReading, Snapshot
from qwendesk.widgets.bind import REPAINT_EVERY_MS, bind
from qwendesk.widgets.file_dialogs import ask_for_file
from qwendesk.widgets.navigation import GRAPHICS_HELP, Navigation
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tasks import window_tasks


class EnginesPresenter(QObject):
    """Connects the services to the list on the Engine page and to the pack that is offered at the first start."""

    offer_changed = Signal(bool, str)
    """True if there is a pack to offer at the first start, and why an installed engine can't use the GPU, or ""."""

    def __init__(
        self,
        installed: InstalledEngines,
        engine: EngineService,
        snapshot: Observed[Snapshot | None],
        navigation: Navigation,
    ) -> None:
        engine_list = EngineList()
        super().__init__(engine_list)
        self.list = engine_list
        self._engines, self._packs, self._switch = installed.engines, installed.packs, installed.switch
        self._installer = installed.installer
        self._engine, self._tasks = engine, window_tasks()
        self.engines = installed.engines.observed
        self._gpus: tuple[GpuReading, ...] = ()
        self._offered = ""
        self.offer = False, ""
        """As in `offer_changed`."""
        self.offer_row = PackRow("start.pack")
        self.list.use_asked.connect(self._ask_use)
        self.list.try_asked.connect(lambda name: self._start(self._switch.try_again(name)))
        self.list.delete_asked.connect(self._ask_delete)
        self.list.pack_asked.connect(self._handle_pack)
        self.list.add_asked.connect(self._ask_file)
        self.list.folder_asked.connect(lambda: self._start(self._open_folder()))
        self.offer_row.asked.connect(lambda what: self._handle_pack(self._offered, what))
        self.list.help_asked.connect(lambda: navigation.help_asked.emit(*GRAPHICS_HELP))
        bind(self, snapshot, self._show_snapshot)
        bind(self, engine.observed, self._show_all)
        bind(self, self._engines.observed, self._show_all)
        bind(self, self._switch.is_waiting, self._show_all)
        bind(self, self._switch.adding, self._show_all)
        bind(self, self._packs.observed, self._show_all, every_ms=REPAINT_EVERY_MS)

    def _show_snapshot(self, snapshot: Snapshot | None) -> None:
        """Take the GPUs of this PC from the latest snapshot."""
        self._gpus = snapshot.gpus if snapshot is not None else ()
        self._show_all()

    def _show_all(self, _state: object = None) -> None:
        engines, wanted = self._engines.engines, self._switch.wanted
        is_waiting, adding = self._switch.is_waiting.value, self._switch.adding.value
        lines = row_texts.engine_lines(engines, wanted, self._engine.state.devices)
        note = row_texts.note_text(engines, wanted, waits=is_waiting, adding=adding)
        if engines.current is not None:
            has_run_cmd = sys.platform == "win32" and not hasattr(sys, "frozen")
            build = build_number(engines.current.release)
            note = note or known_regressions(self._gpus, engines.current.backend, build, has_run_cmd=has_run_cmd)
        best = row_texts.best_text(engines)
        is_busy = bool(engines.trying) or is_waiting or bool(adding)
        self.list.show_engines(lines, best, note, is_best=not wanted, is_busy=is_busy)
        packs = self._pack_lines()
        self.list.show_packs(packs, self._unserved_text())
        offer = next((line for line in packs if not line.hint), None)
        self._offered = offer.name if offer is not None else ""
        if offer is not None:
            self.offer_row.show_line(offer, is_main=True)
        self.offer = offer is not None, self._gpu_problem()
        self.offer_changed.emit(*self.offer)

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        self._tasks.start(work)

    def _ask_use(self, name: str) -> None:
        """Change the engine. Ask the user first if that would stop an answer."""

        def use(at_once: bool) -> None:
            self._start(self._switch.use(name, at_once=at_once))

        if self._switch.is_answering:
            ask_when(self.list, use)
        else:
            use(True)

    def _ask_delete(self, name: str) -> None:
        line = next((each for each in row_texts.engine_lines(self._engines.engines, "") if each.name == name), None)
        if line is not None:
            can_download = any(state.pack.name == name for state in self._packs.states)
            ask_deletion(self.list, line, lambda: self._start(self._switch.delete(name)), can_download=can_download)

    def _ask_file(self) -> None:
        """Ask for an engine pack. In a folder, its `engine.json` stands for it."""
        filters = (tr("Engine packs ({0})", f"*.zip {MANIFEST_NAME}"), tr("All files ({0})", "*"))
        ask_for_file(
            self.list, "engine.adddialog", tr("Add engine from file"), filters,
            lambda path: self._start(self._read_file(Path(path))), kind="downloads",
        )  # fmt: skip

    async def _read_file(self, path: Path) -> None:
        """Read an engine pack and ask whether to add it."""
        pack = await self._installer.read(path)
        ask_addition(self.list, pack, lambda: self._start(self._switch.add_pack_file(pack)))

    def _handle_pack(self, name: str, what: str) -> None:
        """Do what a button of a pack asks for; `what` is get, online, pause or discard."""
        actions: Mapping[str, Callable[[str], Coroutine[Any, Any, object]]] = {
            "get": self._switch.install_pack,
            "online": self._switch.install_pack_online,
            "discard": self._packs.discard,
        }
        if what == "pause":
            self._packs.cancel(name)
        else:
            self._start(actions[what](name))

    async def _open_folder(self) -> None:
        folder = await self._engines.make_user_folder()
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _packs_to_install(self) -> tuple[PackState, ...]:
        """Return the packs to offer: not installed, and either for a GPU of this PC or already partly downloaded."""
        fitting = packs_for(self._packs.states, self._gpus)
        begun = (each for each in self._packs.states if each.is_running or each.done_bytes)
        return tuple(each for each in dict.fromkeys((*fitting, *begun)) if not each.is_installed)

    def _pack_lines(self) -> tuple[PackLine, ...]:
        gpus = self._gpus
        return tuple(
            row_texts.pack_line(
                each, obstacle(each.pack, gpus), is_compiled_here=is_compiled_by_driver(each.pack, gpus)
            )
            for each in self._packs_to_install()
        )

    def _unserved(self) -> tuple[GpuReading, ...]:
        """Return the GPUs that no installed engine can use."""
        current = self._engines.engines.current
        return unserved(self._gpus, self._engine.state.devices or (current.devices if current is not None else ()))

    def _blind_engine(self) -> EngineTrial | None:
        """Return the engine that runs, and is for a card of this PC, but doesn't see it; None if there is none."""
        gpus, engines = self._unserved(), self._engines.engines
        for trial in engines.trials:
            devices = self._engine.state.devices if trial.name == engines.chosen else ()
            if any(fits(trial.backend, gpu) for gpu in unserved(gpus, devices or trial.devices)):
                return trial
        return None

    def _gpu_problem(self) -> str:
        """Return why an installed engine can't use the GPU; "" if no reason is known."""
        gpus, engines, blind = self._unserved(), self._engines.engines, self._blind_engine()
        if blind is not None:
            return row_texts.blind_engine_text(blind)
        backends: dict[str, Backend] = {trial.name: trial.backend for trial in engines.trials}
        for line in row_texts.engine_lines(engines, ""):
            if line.sentence and any(fits(backends[line.name], gpu) for gpu in gpus):
                return tr("{0}: {1}", line.title, line.sentence)
        return ""

    def _unserved_text(self) -> str:
        gpus, blind = self._unserved(), self._blind_engine()
        name = " + ".join(gpu.name or str(gpu.vendor) for gpu in gpus)
        if blind is not None:
            return f"{tr('Not in use: {0}.', name)} {row_texts.blind_engine_text(blind)}"
        if not gpus or self._packs_to_install() or self._gpu_problem():
            return ""
        build = "cuda" if any(gpu.vendor == "nvidia" for gpu in gpus) else "vulkan"
        return tr(
            "No engine here can use {0}, and none for it is published yet. Until then: run "
            "QwenDesk from its source with ENGINE={1}, or put a folder with an engine into {2}.",
            name, build, self._engines.user_folder,
        )  # fmt: skip


def ask_when(parent: QWidget, change: Callable[[bool], None]) -> None:
    """Ask whether to stop the answer (`change(True)`) or to wait for its end (`change(False)`). Esc changes nothing."""
    answers = (
        DialogButton("after", tr("After the answer"), lambda: change(False)),
        DialogButton("now", tr("Stop and change"), lambda: change(True)),
        DialogButton("keep", tr("Keep this engine")),
    )
    question = tr("An answer is in progress. Change the engine now?")
    consequence = tr("Changing now stops the answer. The model is loaded again.")
    QuestionDialog(parent, "engine.when", question, consequence, answers, default="after").open()


def ask_addition(parent: QWidget, pack: PackFile, add: Callable[[], None]) -> None:
    """Ask whether to add an engine from a file. Enter and Esc don't add one that is not on the app's list."""
    facts = pack_facts(pack, digits_per_group=16)
    answers = (DialogButton("yes", tr("Add engine"), add), DialogButton("no", tr("Cancel")))
    question = tr("Add the engine {0}?", pack.manifest.name)
    default = "yes" if pack.is_listed else "no"
    QuestionDialog(parent, "engine.addition", question, "\n\n".join(facts), answers, default=default).open()


def ask_deletion(parent: QWidget, line: EngineLine, delete: Callable[[], None], *, can_download: bool) -> None:
    """Ask whether to delete an engine. Enter and Esc both keep it."""
    freed = tr("This frees {0}.", show_bytes(line.n_bytes)) if line.n_bytes else tr("Its folder is removed.")
    later = tr("You can download it again.") if can_download else tr("You can't download it again from here.")
    answers = (DialogButton("yes", tr("Delete"), delete), DialogButton("no", tr("Keep")))
    question = tr("Delete {0}?", line.title)
    QuestionDialog(parent, "engine.deletion", question, join_sentences(freed, later), answers, default="no").open()
