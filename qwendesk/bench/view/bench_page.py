"""The Bench page: three questions, earlier results, and a section that answers each question."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QStackedWidget, QWidget

from qwendesk.bench.bench_runs import chosen_file, chosen_model
from qwendesk.bench.records import BenchRecord
from qwendesk.bench.services import BenchServices
from qwendesk.bench.speed_service import SpeedState
from qwendesk.bench.speed_text import expected_run_text, record_sentence
from qwendesk.bench.view.compare_section import CompareSection
from qwendesk.bench.view.pasted_dialog import PastedDialog
from qwendesk.bench.view.pc_section import PcSection
from qwendesk.bench.view.quality_section import QualitySection
from qwendesk.bench.view.speed_section import FIRST_DEPTH, SpeedSection, plan_up_to
from qwendesk.bench.view.tune_section import TuneSection
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_date
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.kit import (
    GAP,
    LIST_PADDING,
    MARGIN,
    PAGE_WIDTH,
    STRETCH,
    IconLabel,
    button,
    card,
    centred,
    column,
    label,
    paragraph,
    row,
    rule,
)
from qwendesk.widgets.layouts import (
    SCROLL_BAR,
    EqualColumnsLayout,
    FlowLayout,
    ResponsivePairLayout,
    steady_scroll_area,
    widget_with,
)
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tabbed_page import BELOW
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

# The first page, and what it leads to.
_HOME: Final = "home"
_MOST_RESULTS = 5
_ICON, _ICON_BOX = 20, 40
# Least width in pixels of a question, of the title of a section beside its buttons, and of a result beside its date.
_LEAST_QUESTION, _LEAST_TITLE, _LEAST_RESULT = 240, 320, 280

SectionT = TypeVar("SectionT", bound=SpeedSection | TuneSection | CompareSection | QualitySection | PcSection)


class BenchPage(QWidget):
    """The Bench page. Its sections are built when they are first shown."""

    def __init__(self, services: BenchServices, engine: Observed[EngineState], navigation: Navigation) -> None:
        """`engine` has the model that is chosen at the top of the window, which is measured."""
        super().__init__()
        self._services, self._navigation = services, navigation
        self._tasks = window_tasks()
        self.setProperty("kind", "page")
        self.setObjectName("bench.page")
        self._speed = self._lazy("speed", tr("How fast is it?"), self._make_speed)
        self._tune = self._lazy("tune", tr("Make it faster"), lambda: TuneSection(services.tune, engine))
        sections: dict[str, QWidget] = {
            "speed": self._speed,
            "tune": self._tune,
            "compare": self._lazy(
                "compare", tr("Which is better?"), lambda: CompareSection(services, engine, navigation)
            ),
            "quality": self._lazy("quality", tr("Quality test"), lambda: QualitySection(services.quality, engine)),
            "pc": self._lazy("pc", tr("This PC"), lambda: PcSection(services.pc)),
        }
        self._keys = (_HOME, *sections)
        self._needing_model: list[TextButton] = []
        self._records: Sequence[BenchRecord] = ()
        self._stack = QStackedWidget()
        self.setLayout(column(self._stack, spacing=0))
        for widget in (self._home(), *sections.values()):
            self._stack.addWidget(widget)
        bind_field(self, engine, chosen_file, self._choose)
        self._tasks.start(services.speed.read())
        bind_field(self, engine, chosen_model, self._show_chosen)
        bind(self, services.speed.state, self._show_speed)

    def _choose(self, options: LoadOptions | None) -> None:
        self._tasks.start(self._services.speed.choose(options))

    def _lazy(self, key: str, title: str, make: Callable[[], SectionT]) -> "LazyPage[SectionPage[SectionT]]":
        def build() -> Iterator[SectionPage[SectionT] | None]:
            section, back = make(), IconButton("left")
            describe(back, f"bench.{key}.back", tr("Back to Bench"))
            back.clicked.connect(lambda: self.show_section(_HOME))
            yield None
            yield SectionPage(back, title, section)

        return LazyPage(build)

    def _make_speed(self) -> SpeedSection:
        section = SpeedSection(self._services, self._navigation)
        section.tune_asked.connect(self._begin_tuning)
        return section

    @property
    def shown_section(self) -> str:
        """The key of what is shown: "home", "speed", "tune", "compare", "quality" or "pc"."""
        return self._keys[self._stack.currentIndex()]

    def show_section(self, key: str) -> None:
        """Show a section, or "home"."""
        focus, shown = QApplication.focusWidget(), self._stack.currentWidget()
        was_inside = focus is None or (shown is not None and shown.isAncestorOf(focus))
        before = self.shown_section
        self._stack.setCurrentIndex(self._keys.index(key))
        if key == _HOME:
            self._show_time()
        if was_inside:
            name = f"bench.{before}" if key == _HOME else f"bench.{key}.back"
            control = self.findChild(QWidget, name)
            if control is not None:
                control.setFocus()

    def _home(self) -> QWidget:
        self._measured = ElidedLabel("bench.model", kind="dim")
        self._measured.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        head = row(label(tr("Bench"), "pagetitle"), self._measured, spacing=GAP, margins=(0, 16, 0, 8))
        head.setStretch(1, 1)
        questions = EqualColumnsLayout(least=_LEAST_QUESTION, spacing=GAP)
        self._time = paragraph(kind="dim", name="bench.time")
        for card_of_question in (
            self._question(
                "speed", "gauge", tr("How fast is it?"), tr("How quickly the model answers and reads on this PC."),
                tr("Measure"), self._time, self._begin_measuring,
            ),
            self._question(
                "tune", "speed", tr("Make it faster"),
                tr("Tries settings one by one and shows what is faster. Nothing changes until you choose."),
                tr("Tune"), paragraph(tr("3 minutes at most"), "dim"), self._begin_tuning,
            ),
            self._question(
                "compare", "scales", tr("Which is better?"),
                tr("Two models answer the same question side by side. You judge."),
                tr("Compare"), paragraph(tr("as long as the answers"), "dim"), lambda: self.show_section("compare"),
            ),
        ):  # fmt: skip
            questions.addWidget(card_of_question)
        self._results_title = label(tr("Earlier results"), "heading")
        self._results = column(spacing=0)
        self._results_card = card(self._results, padding=0, name="bench.results")
        experts = FlowLayout()
        experts.addWidget(label(tr("For experts:"), "dim"))
        for key, text, tip in (
            ("quality", tr("Quality test (perplexity)"), tr("Measures how much a smaller file loses")),
            ("pc", tr("Measure every engine on this PC"), tr("Writes a report for whoever helps you")),
        ):
            link = button(text, f"bench.{key}", kind="link", tip=tip)
            link.clicked.connect(lambda _checked=False, key=key: self.show_section(key))
            experts.addWidget(link)
        tip = tr("Speeds that were measured elsewhere can count under For this PC, too.")
        paste = button(tr("Paste speeds…"), "bench.paste", kind="link", tip=tip)
        paste.clicked.connect(self._paste)
        experts.addWidget(paste)
        content = column(
            head, questions, 8, self._results_title, self._results_card, experts, STRETCH, spacing=GAP,
            margins=(0, 0, 0, BELOW),
        )  # fmt: skip
        return steady_scroll_area(_centred_column(widget_with(content)))

    def _question(
        self,
        key: str,
        icon_name: str,
        title: str,
        words: str,
        verb: str,
        time: QLabel,
        begin: Callable[[], None],
    ) -> QFrame:
        """Return the card of a question; `begin` opens its section."""
        icon = IconLabel(icon_name, "accent", _ICON)
        icon.setFixedSize(_ICON_BOX, _ICON_BOX)
        icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box = card(column(icon, spacing=0), "iconbox", padding=0)
        go = button(verb, f"bench.{key}", kind="primary" if key == "speed" else "", said=f"{title} {verb}")
        go.clicked.connect(begin)
        time.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        foot = row(go, time)
        foot.setStretch(1, 1)
        if key != "compare":
            self._needing_model.append(go)
        return card(
            column(
                row(box, STRETCH), 8, label(title, "heading"), paragraph(words, "lead"), STRETCH, 8,
                foot, spacing=8,
            )
        )  # fmt: skip

    def _begin_measuring(self) -> None:
        self.show_section("speed")
        self._speed.when_built(lambda page: page.section.begin())

    def _begin_tuning(self) -> None:
        self.show_section("tune")
        self._tune.when_built(lambda page: page.section.begin())

    def _paste(self) -> None:
        PastedDialog(self, self._services.catalog, self._services.cards_here()).open()

    def _show_chosen(self, chosen: LoadOptions | None) -> None:
        text = tr("Choose a model at the top of the window")
        if chosen is not None:
            text = tr("Measures {0}, the chosen model", model_title(chosen.model))
        self._measured.setText(text)
        self._measured.setToolTip(text)

    def _show_speed(self, state: SpeedState) -> None:
        for each in self._needing_model:
            each.setEnabled(state.options is not None)
        self._show_time()
        self._show_records(state.records[:_MOST_RESULTS])

    def _show_time(self) -> None:
        """Say how long a run takes, up to the depth that the user chose."""
        plan = self._speed.page().section.plan if self._speed.is_built else plan_up_to(FIRST_DEPTH)
        self._time.setText(expected_run_text(self._services.expected_run_s(plan)))

    def _show_records(self, records: Sequence[BenchRecord]) -> None:
        self._results_title.setVisible(bool(records))
        self._results_card.setVisible(bool(records))
        if self._records == records:
            return
        self._records = records
        while (item := self._results.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for number, record in enumerate(records):
            self._results.addWidget(self._result(number, record))

    def _result(self, number: int, record: BenchRecord) -> QWidget:
        icon, sentence = IconLabel("gauge"), paragraph(record_sentence(record), name=f"bench.result.{number}")
        when = label(tr("{0}, {1}", show_date(record.at), record.at[11:16]), "small")
        show = button(tr("Show"), f"bench.show.{number}", kind="link", said=f"{tr('Show')}: {sentence.text()}")
        show.clicked.connect(lambda: self._show_record(record))
        words = row(icon, sentence, spacing=12)
        words.setStretch(1, 1)
        line = ResponsivePairLayout(widget_with(words), widget_with(row(when, show, spacing=12)), least=_LEAST_RESULT)
        parts = [rule()] if number else []
        return widget_with(column(*parts, column(line, margins=(LIST_PADDING, 8, LIST_PADDING, 8)), spacing=0))

    def _show_record(self, record: BenchRecord) -> None:
        self.show_section("speed")
        self._speed.when_built(lambda page: page.section.show_record(record))


class SectionPage(QWidget, Generic[SectionT]):
    """A section below its title, with a way back. The report of a PC scrolls itself."""

    def __init__(self, back: QWidget, title: str, section: SectionT) -> None:
        super().__init__()
        self.section = section
        note = section.note if isinstance(section, SpeedSection | TuneSection | QualitySection) else QWidget()
        self.setProperty("kind", "column")
        titles = row(back, label(title, "pagetitle"), note)
        titles.setStretch(2, 1)
        head = ResponsivePairLayout(widget_with(titles), section.corner, least=_LEAST_TITLE)
        heading, content = widget_with(column(head, margins=(0, 16, 0, 8))), QWidget()
        scrolls_itself = isinstance(section, PcSection)
        body = _centred_column(content, beside_bar=scrolls_itself)
        self.setLayout(
            column(
                _centred_column(heading, beside_bar=True),
                body if scrolls_itself else steady_scroll_area(body),
                spacing=0,
            )
        )
        # Last, because Qt styles it again whenever a widget around it gets a parent.
        content.setLayout(column(section, margins=(0, 0, 0, 0) if scrolls_itself else (0, 4, 0, BELOW)))


def _centred_column(widget: QWidget, *, beside_bar: bool = False) -> QWidget:
    """Return `widget` in the page's column; `beside_bar` leaves the room of a scroll bar at the right."""
    holder = QWidget()
    holder.setProperty("kind", "column")
    layout = centred(widget, PAGE_WIDTH, margin=MARGIN)
    if beside_bar:
        layout.setContentsMargins(MARGIN, 0, MARGIN + SCROLL_BAR, 0)
    holder.setLayout(layout)
    return holder
