"""Builds the widgets of the meters and connects them to the services."""

import msgspec
from PySide6.QtWidgets import QWidget

from qwendesk.meters.services import MeterServices
from qwendesk.meters.spill_remedies import RemedyId
from qwendesk.meters.view.history_popup import HistoryPopup
from qwendesk.meters.view.meter_bar import MeterBar
from qwendesk.meters.view.spill_banner import SpillBanner, story_of
from qwendesk.widgets.bind import bind
from qwendesk.widgets.tasks import window_tasks


class MeterViews(msgspec.Struct):
    banner: SpillBanner
    history: HistoryPopup


def build_views(services: MeterServices, bar: MeterBar, window: QWidget) -> MeterViews:
    """Build the spill banner and the history, and show the state of the services in them and in `bar`."""
    meters, remedies, comparisons = services.service.state, services.remedies.state, services.comparer.comparisons
    banner, history, tasks = SpillBanner(), HistoryPopup(window), window_tasks()

    def show_meters(_change: object) -> None:
        bar.show_meters(meters.value, comparisons.value)
        if history.isVisible():
            history.show_history(meters.value, comparisons.value)

    def show_banner(_change: object) -> None:
        banner.show_story(story_of(meters.value, remedies.value, on_windows=services.platform == "win32"))

    def open_history() -> None:
        history.show_history(meters.value, comparisons.value)
        history.show_above(bar.history_anchor)

    def choose(button: str) -> None:
        match button:
            case "load_again":
                tasks.start(services.remedies.load_again())
            case "stop_waiting":
                services.remedies.stop_waiting()
            case "drafts" | "experts" | "vision" | "both" | "kv" | "context" | "layers" | "eject":
                remedy: RemedyId = button
                tasks.start(services.remedies.apply(remedy, meters.value))

    bind(bar, meters, show_meters)
    bind(bar, comparisons, show_meters)
    bind(banner, meters, show_banner)
    bind(banner, remedies, show_banner)
    bar.history_asked.connect(open_history)
    banner.chosen.connect(choose)
    return MeterViews(banner, history)
