"""Notices that offer the engine for an NVIDIA card, and say when it is ready or doesn't run."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_list, tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.gpu_engine import GpuEngine, GpuEngineState
from qwendesk.engines.services import InstalledEngines
from qwendesk.engines.view.row_texts import engine_title
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.widgets.bind import bind
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.tasks import window_tasks


class GpuEngineNotices(QObject):
    """Asks for a notice when the state has something to tell. Its buttons close it."""

    def __init__(
        self,
        parent: QObject,
        installed: InstalledEngines,
        snapshot: Observed[Snapshot | None],
        navigation: Navigation,
    ) -> None:
        super().__init__(parent)
        self._snapshot, self._navigation = snapshot, navigation
        self._has_begun = False
        self._gpu_engine: GpuEngine = installed.gpu_engine
        self._switch = installed.switch
        bind(self, self._gpu_engine.state, self._show)

    def begin(self) -> None:
        """Get or offer an engine for the GPU once the meters have found one. An engine is chosen by then."""
        bind(self, self._snapshot, self._on_snapshot)

    def _on_snapshot(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None and snapshot.gpus and not self._has_begun:
            self._has_begun = True
            window_tasks().start(self._gpu_engine.begin(snapshot.gpus))

    def _show(self, state: GpuEngineState) -> None:
        notice = self._notice_of(state)
        if notice is not None:
            self._navigation.notice_made.emit(notice)

    def _notice_of(self, state: GpuEngineState) -> Notice | None:
        show = NoticeAction("show", tr("Show engines"), tr("Open the Engine page"), self._show_page)
        if state.offered is not None:
            return _offer(state.offered, self._accept, self._gpu_engine.refuse)
        if state.ready is not None:
            use = NoticeAction("use", tr("Use it now"), tr("Load the model again with this engine"), self._use)
            title = tr("A faster engine for your card is ready")
            sentence = tr("{0} is used from the next start.", engine_title(state.ready))
            return Notice("gpuengine", title, sentence, (use, show))
        if state.failed is not None:
            title = tr("{0} doesn't run on this PC", engine_title(state.failed))
            sentence = tr("{0} QwenDesk uses the next best engine.", state.failed.reason)
            return Notice("gpuengine", title, sentence, (show,))
        if state.wrong is not None:
            title = tr("{0} was not installed", state.wrong.pack.title)
            sentence = tr("{0} It is not downloaded again automatically.", state.wrong.problem)
            return Notice("gpuengine", title, sentence, (show,))
        return None

    def _show_page(self) -> None:
        self._navigation.page_asked.emit("engine")

    def _accept(self) -> None:
        window_tasks().start(self._gpu_engine.accept())

    def _use(self) -> None:
        window_tasks().start(self._switch.use("", at_once=False))


def _offer(pack: EnginePack, accept: Callable[[], None], refuse: Callable[[], None]) -> Notice:
    licences = join_list(dict.fromkeys(archive.licence for archive in pack.archives))
    sentence = tr(
        "{0} usually answers faster than Vulkan on your card. The download takes about {1} (licence: {2}) and runs in "
        "the background. You can delete the engine on the Engine page.",
        pack.title, show_bytes(pack.n_bytes), licences,
    )  # fmt: skip
    actions = (
        NoticeAction("get", tr("Download"), tr("Download, verify and try this engine"), accept),
        NoticeAction("never", tr("Don't offer again"), tr("Stay with the engine in use"), refuse),
    )
    return Notice("gpuengine", tr("There is a faster engine for your card"), sentence, actions)
