"""Builds the Bench page and connects it to the services of the feature."""

from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QGuiApplication

from qwendesk.bench.comparison import comparison_markdown
from qwendesk.bench.services import BenchServices
from qwendesk.bench.share import share_text
from qwendesk.bench.view.bench_page import BenchPage
from qwendesk.bench.view.compare_tab import CompareTab
from qwendesk.bench.view.quality_tab import QualityTab
from qwendesk.core.files import write_whole
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.layouts import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks


class BenchView(QObject):
    """The bench feature in the window. The page is built when it is first shown."""

    def __init__(self, services: BenchServices, engine: Observed[EngineState], navigation: Navigation) -> None:
        """`engine` has the model that is chosen at the top of the window, which is measured."""
        super().__init__()
        self._navigation = navigation
        self._services, self._engine, self._tasks = services, engine, window_tasks()
        self.page = LazyPage(self._build)

    def _build(self) -> BenchPage:
        page = BenchPage()
        self._add_speed_tab(page)
        self._add_tune_tab(page)
        self._add_quality_tab(page)
        self._add_compare_tab(page)
        return page

    def _add_speed_tab(self, page: BenchPage) -> None:
        # Imported only now, because pyqtgraph takes a quarter of a second.
        from qwendesk.bench.view.speed_tab import SpeedTab  # noqa: PLC0415

        speed = self._services.speed
        tab = SpeedTab(self._services.decode_tok_s)
        tab.run_asked.connect(lambda plan: self._tasks.start(speed.run(plan)))
        tab.stop_asked.connect(speed.stop)

        def choose(options: LoadOptions | None) -> None:
            self._tasks.start(speed.choose(options))

        def copy() -> None:
            if tab.record is not None:
                QGuiApplication.clipboard().setText(share_text(tab.record, speed.state.value.published))

        def save(path: str) -> None:
            if not tab.results.grab().save(path, "PNG"):
                self._navigation.error_found.emit(
                    tr("Not saved"), tr("The picture couldn't be written. Choose another folder.")
                )

        def ask() -> None:
            if tab.record is not None:
                ask_where_to_save(tab, "bench.save", tr("Save as picture"), f"{tab.record.title}.png", save)

        tab.text_asked.connect(copy)
        tab.picture_asked.connect(ask)
        bind(tab, speed.state, tab.show_state, every_ms=30)
        bind_field(tab, self._engine, chosen_file, choose)
        page.add_bench_tab("speed", tr("Speed"), tab, tab.corner)

    def _add_tune_tab(self, page: BenchPage) -> None:
        # Imported only now, because pyqtgraph takes a quarter of a second.
        from qwendesk.bench.view.tune_tab import TuneTab  # noqa: PLC0415

        tune = self._services.tune
        tab = TuneTab()

        def run(may_change_answers: bool) -> None:
            chosen = chosen_file(self._engine.value)
            if chosen is not None:
                self._tasks.start(tune.run(chosen, may_change_answers=may_change_answers))

        tab.run_asked.connect(run)
        tab.stop_asked.connect(tune.stop)
        tab.use_asked.connect(lambda: self._tasks.start(tune.use()))
        bind(tab, tune.state, tab.show_state, every_ms=60)
        bind_field(tab, self._engine, chosen_file, tab.set_model)
        page.add_bench_tab("tune", tr("Auto-tune"), tab, tab.corner)

    def _add_quality_tab(self, page: BenchPage) -> None:
        quality = self._services.quality
        tab = QualityTab()
        tab.run_asked.connect(lambda plan: self._tasks.start(quality.run(plan)))
        tab.stop_asked.connect(quality.stop)
        bind(tab, quality.state, tab.show_state, every_ms=60)
        bind_field(tab, self._engine, chosen_file, quality.choose)
        self._tasks.start(quality.read())
        page.add_bench_tab("quality", tr("Quality"), tab, tab.corner)

    def _add_compare_tab(self, page: BenchPage) -> None:
        services, compare = self._services, self._services.compare
        tab = CompareTab()
        tab.run_asked.connect(lambda comparison: self._tasks.start(compare.run(comparison)))
        tab.stop_asked.connect(compare.stop)

        def update_choices() -> None:
            chosen = chosen_model(self._engine.value)
            tab.set_choices(chosen.model if chosen is not None else "", services.models(), services.presets())

        def text() -> str:
            return comparison_markdown(compare.state.value)

        def save(path: str) -> None:
            try:
                write_whole(Path(path), text().encode())
            except OSError as error:
                self._navigation.error_found.emit(
                    tr("Not saved"), tr("{0} couldn't be written: {1}.", path, error.strerror or error)
                )

        tab.copy_asked.connect(lambda: QGuiApplication.clipboard().setText(text()))
        tab.save_asked.connect(
            lambda: ask_where_to_save(tab, "compare.save", tr("Save as Markdown"), "comparison.md", save)
        )
        tab.shown.connect(update_choices)
        bind(tab, compare.state, tab.show_state, every_ms=60)
        bind_field(tab, self._engine, chosen_model, lambda _chosen: update_choices())
        page.add_bench_tab("compare", tr("Compare"), tab, tab.corner)


def chosen_model(state: EngineState) -> LoadOptions | None:
    """Return the model that is chosen at the top of the window; None if there is none."""
    return state.idle_unloaded or state.requested


def chosen_file(state: EngineState) -> LoadOptions | None:
    """Return the chosen model if it can be measured; None for one on a server, which loads nothing for tests."""
    chosen = chosen_model(state)
    return chosen if chosen is None or not is_served(chosen.model) else None
