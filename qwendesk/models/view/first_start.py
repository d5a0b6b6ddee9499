"""The first start: one recommended model with a button, and other ways to begin below."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_sentences, tr, tr_n, unbroken
from qwendesk.core.units import show_bytes
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.models.first_start import FirstStartState
from qwendesk.models.offers import unused_gpus
from qwendesk.models.ranking import Offer
from qwendesk.models.services import ModelServices
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.offer_texts import (
    download_text,
    fit_details,
    fit_text,
    time_text,
    welcome_pc_text,
)
from qwendesk.models.view.speed_texts import expected_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.navigation import GRAPHICS_HELP, Navigation
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel, WrappingLabel

if TYPE_CHECKING:
    from qwendesk.engines.view.engines_presenter import EnginesPresenter

_WIDEST = 680
# Least width in pixels of a title of the list, and of the name of a quant or file.
_LEAST_CELL = 80
# Minimum height in pixels of a line of the list, which a line with a button needs.
_LINE = 28


class FirstStart(QWidget):
    """Shown instead of the empty chat while there is no model."""

    def __init__(
        self,
        services: ModelServices,
        actions: ModelActions,
        find_engines: "Callable[[], EnginesPresenter | None]",
        snapshot: Observed[Snapshot | None],
        navigation: Navigation,
    ) -> None:
        """`find_engines` returns what offers an engine for a GPU that the installed one can't use; None without it."""
        super().__init__()
        service = services.first_start
        self._service, self._offers, self._tasks = service, services.offers, window_tasks()
        self._actions, self._find_engines, self._snapshot, self._navigation = (
            actions,
            find_engines,
            snapshot,
            navigation,
        )
        self._engines: EnginesPresenter | None = None
        self._has_engine_offer = False
        self._trouble = ""
        self.setProperty("kind", "page")
        self.setObjectName("start")
        self._pc = _label("lead", "start.pc")
        self._gpu_row = self._unused_gpu_row()
        self._found = _label("", "start.found")
        self._use = TextButton(kind="primary")
        describe(self._use, "start.use", tr("Load"))
        self._use.clicked.connect(self._on_use)
        self._found_card = _framed(self._found_row(), "modelcard")
        self._card = self._hero_card()
        self._quick = TextButton()
        self._quick.clicked.connect(lambda: self._download(service.state.value.offers.quick))
        holder = QWidget()
        holder.setMaximumWidth(_WIDEST)
        column = QVBoxLayout(holder)
        column.setSpacing(14)
        title = QLabel(tr("Welcome"))
        title.setProperty("kind", "title")
        column.addStretch(5)
        column.addWidget(title)
        column.addWidget(self._pc)
        column.addWidget(self._gpu_row)
        column.addWidget(self._found_card)
        column.addWidget(self._card)
        column.addLayout(self._others())
        column.addStretch(6)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = QWidget()
        inside.setProperty("kind", "column")
        row = QHBoxLayout(inside)
        row.setContentsMargins(16, 8, 16, 8)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        area.setWidget(inside)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 0, 0, 0)
        around.addWidget(area)
        bind(self, service.state, self._show)
        bind(self, services.offers.state, lambda _offers: self._show_gpu_row())
        bind(self, snapshot, lambda _snapshot: self._show_gpu_row())

    def _add_engine_offer(self) -> None:
        engines = self._engines = self._find_engines()
        if engines is not None:
            self._gpu_column.addWidget(engines.offer_row)
            engines.offer_changed.connect(self._show_engine_offer)
            self._has_engine_offer, self._trouble = engines.offer

    def _show_engine_offer(self, is_shown: bool, trouble: str) -> None:
        """Show or hide the row; `trouble` is why an installed engine can't use the GPU."""
        self._has_engine_offer, self._trouble = is_shown, trouble
        self._show_gpu_row()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.update_free_space()

    def update_free_space(self) -> None:
        self._tasks.start(self._service.update_free_space())

    def _show_gpu_row(self) -> None:
        """Show that the engine can't use cards of this PC, if there are any."""
        names = tr(" and ").join(unused_gpus(self._offers.state.value, self._snapshot.value))
        if names and self._engines is None:
            self._add_engine_offer()
        self._gpu_row.setVisible(bool(names))
        self._gpu_help.setVisible(not self._has_engine_offer)
        if self._engines is not None:
            self._engines.offer_row.setVisible(self._has_engine_offer)
        if self._has_engine_offer:
            self._gpu.setText(
                tr("{0} needs a separate engine. Until it's installed, estimates assume CPU only.", names)
            )
            return
        text = tr(
            "This PC has {0}, but the installed engine can't use it. Everything works, but slower. The estimates are "
            "without it.",
            names,
        )
        self._gpu.setText(tr("{0} {1}", text, self._trouble) if self._trouble else text)

    def _unused_gpu_row(self) -> QWidget:
        self._gpu = _label("", "start.gpu")
        more = TextButton(tr("Show me how"), kind="link")
        describe(more, "start.gpu.help", tr("Show me how"), tr("Open the guide page about engines"))
        more.clicked.connect(lambda: self._navigation.help_asked.emit(*GRAPHICS_HELP))
        self._gpu_help = more
        row = QHBoxLayout()
        row.addWidget(self._gpu, 1)
        row.addWidget(more)
        holder = _framed(column := QVBoxLayout(), "modelcard")
        column.addLayout(row)
        self._gpu_column = column
        holder.hide()
        return holder

    def _found_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.addWidget(self._found, 1)
        row.addWidget(self._use)
        return row

    def _hero_card(self) -> QFrame:
        self._name = _label("heading", "start.name")
        self._name.setWordWrap(True)
        self._fit = WrappingLabel()
        self._fit.setObjectName("start.fit")
        self._fit.setProperty("chip", "plain")
        chip = QLabel(tr("Recommended"))
        chip.setProperty("chip", "accent")
        self._chip = chip
        head = QHBoxLayout()
        head.addWidget(self._name, 1)
        head.addWidget(chip, 0, Qt.AlignmentFlag.AlignTop)
        self._rows = QGridLayout()
        self._rows.setColumnMinimumWidth(0, _LEAST_CELL)
        self._rows.setColumnMinimumWidth(1, _LEAST_CELL)
        self._rows.setHorizontalSpacing(12)
        self._rows.setColumnStretch(1, 1)
        self._rows.setVerticalSpacing(6)
        self._model, self._model_size = self._row(0, tr("Model"), "model")
        self._mmproj, self._mmproj_size = self._row(2, tr("Pictures"), "mmproj")
        self._pictures = TextButton(kind="link")
        self._pictures.clicked.connect(self._toggle_pictures)
        self._rows.addWidget(self._pictures, 2, 3, Qt.AlignmentFlag.AlignRight)
        self._folder, self._free = self._row(4, tr("Save to"), "folder")
        self._change = TextButton(tr("Change…"), kind="link")
        describe(self._change, "start.change", tr("Save to another folder"))
        self._change.clicked.connect(self._choose_folder)
        self._rows.addWidget(self._change, 4, 3, Qt.AlignmentFlag.AlignRight)
        self._expect = _label("dim", "start.expect")
        self._problem = _label("error", "start.problem")
        self._bar = QProgressBar()
        self._bar.setObjectName("start.progress")
        self._bar.setAccessibleName(tr("Download"))
        self._bar.setTextVisible(False)
        self._bar.setMaximum(1000)
        self._download_button = TextButton(tr("Download and start"), kind="primary")
        describe(self._download_button, "start.download", tr("Download and start"))
        self._download_button.clicked.connect(self._on_download)
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addLayout(head)
        column.addWidget(self._fit, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(self._rows)
        column.addWidget(self._expect)
        column.addWidget(self._bar)
        column.addWidget(self._problem)
        column.addWidget(self._download_button, 0, Qt.AlignmentFlag.AlignLeft)
        return _framed(column, "hero")

    def _row(self, row: int, title: str, name: str) -> tuple[QLabel, QLabel]:
        """Add a line to the list: a title, a description and a size, with a rule below. Return the last two labels."""
        label, which, size = QLabel(title), ElidedLabel(f"start.{name}"), WrappingLabel()
        size.setObjectName(f"start.{name}.size")
        for each in (label, size):
            each.setProperty("kind", "dim")
        self._rows.setRowMinimumHeight(row, _LINE)
        self._rows.addWidget(label, row, 0)
        self._rows.addWidget(which, row, 1)
        self._rows.addWidget(size, row, 2, Qt.AlignmentFlag.AlignRight)
        rule = QFrame()
        rule.setProperty("kind", "rule")
        rule.setFixedHeight(1)
        self._rows.addWidget(rule, row + 1, 0, 1, 4)
        return which, size

    def _others(self) -> QVBoxLayout:
        files = TextButton(tr("I have models"))
        tip = tr("Use the models of other apps on this PC")
        describe(files, "start.files", tr("I have models"), tip)
        files.clicked.connect(lambda: self._navigation.models_tab_asked.emit("mine"))
        demo = TextButton(tr("Try the built-in demo (knows a few topics)"), kind="link")
        tip = tr("Tiny and fast. It shows the app, not what a real model can do.")
        describe(demo, "start.demo", tr("Try the built-in demo"), tip)
        demo.clicked.connect(self._navigation.demo_asked)
        row = FlowLayout(spacing=12)
        for button in (self._quick, files):
            row.addWidget(button)
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(demo, 0, Qt.AlignmentFlag.AlignLeft)
        return column

    def _show(self, start: FirstStartState) -> None:
        offers = start.offers
        self._pc.setText(pc_line(start))
        self._show_found(start)
        hero = offers.hero
        self._card.setVisible(hero is not None)
        if hero is not None:
            self._show_hero(start, hero)
        self._show_quick(start)

    def _show_quick(self, start: FirstStartState) -> None:
        """Show on its button the small model to start with and its size, or the progress of its download."""
        offer = start.offers.quick
        self._quick.setVisible(offer is not None)
        if offer is not None and offer.recommended is not None:
            coming = start.download_of(offer.recommended)
            size = show_bytes(offer.recommended.total_bytes)
            self._quick.setText(
                tr("Chat in a minute: {0}, {1}", offer.id, size)
                if coming is None
                else tr("{0}: {1}", offer.id, download_text(coming))
            )
            self._quick.setEnabled(coming is None)
        describe(self._quick, "start.quick", self._quick.text(), tr("A small model to start with"))

    def _show_found(self, start: FirstStartState) -> None:
        self._found_card.setVisible(bool(start.found))
        if start.found:
            best = start.found[0]
            n_more, size = len(start.found) - 1, show_bytes(best.n_bytes)
            self._found.setText(
                tr_n("Found on this PC: {1}, {2} and {0} more", "Found on this PC: {1}, {2} and {0} more",
                     n_more, best.name, size)
                if n_more
                else tr("Found on this PC: {0}, {1}", best.name, size)
            )  # fmt: skip
            self._use.setText(tr("Load"))
            self._use.setToolTip(best.path)

    def _show_hero(self, start: FirstStartState, hero: Offer) -> None:
        quant = hero.recommended
        if quant is None:
            return
        self._name.setText(tr("{0}, sees pictures", hero.id) if quant.mmproj_bytes else hero.id)
        text, tone = fit_text(quant.fit)
        self._fit.setText(text)
        self._fit.setToolTip(fit_details(quant.fit))
        restyle(self._fit, "chip", tone)
        self._model.setText(quant.quant)
        self._model.setToolTip(quant.quant)
        self._model_size.setText(show_bytes(quant.n_bytes))
        self._mmproj.setText(quant.mmproj_path.rpartition("/")[2].removesuffix(".gguf") or tr("None"))
        self._mmproj.setToolTip(self._mmproj.text())
        self._mmproj_size.setText(show_bytes(quant.mmproj_bytes) if quant.mmproj_bytes else "")
        words = tr("Skip vision file") if start.offers.with_pictures else tr("With pictures")
        self._pictures.setText(words)
        describe(self._pictures, "start.pictures", words, tr("Download with or without the vision file (mmproj)"))
        self._folder.setText(start.folder)
        self._folder.setToolTip(start.folder)
        self._free.setText("" if start.free_bytes is None else tr("{0} free", show_bytes(start.free_bytes)))
        item = start.download_of(quant)
        missing = start.missing_bytes(hero)
        lines = [time_text(quant.total_bytes, start.measured_bytes_per_s) if item is None else download_text(item)]
        lines += [
            metered_text(start, quant.total_bytes),
            unbroken(expected_text(hero, hero.recommended)),
        ]
        self._expect.setText(join_sentences(*lines))
        self._bar.setVisible(item is not None)
        if item is not None:
            self._bar.setValue(round(1000 * item.n_done / max(item.saved.n_bytes, 1)))
        self._problem.setText(
            problem_text(start, missing) if item is None or item.saved.state != "failed" else item.saved.sentence
        )
        self._problem.setVisible(bool(self._problem.text()))
        self._download_button.setEnabled(item is not None or not missing)
        self._download_button.setText(button_text(start, hero))
        self._download_button.setAccessibleName(self._download_button.text())

    def _toggle_pictures(self) -> None:
        with_pictures = not self._offers.state.value.with_pictures
        self._tasks.start(self._offers.set_pictures(with_pictures=with_pictures))

    def _on_download(self) -> None:
        start = self._service.state.value
        hero = start.offers.hero
        if hero is None or hero.recommended is None:
            return
        item = start.download_of(hero.recommended)
        if item is None:
            self._download(hero)
        else:
            self._tasks.start(self._service.pause_or_resume(item))

    def _download(self, offer: Offer | None) -> None:
        if offer is not None:
            self._tasks.start(self._service.download(offer))

    def _on_use(self) -> None:
        found = self._service.state.value.found
        if found:
            self._actions.load(found[0].path)

    def _choose_folder(self) -> None:
        def choose(folder: str) -> None:
            self._tasks.start(self._service.choose_folder(folder))

        title, begin_in = tr("Choose where to save models"), self._service.state.value.folder
        ask_for_folder(self, "start.folderdialog", title, choose, begin_in=begin_in)


def _label(kind: str, name: str) -> QLabel:
    label = QLabel()
    label.setWordWrap(kind in ("lead", "dim", "error", ""))
    if kind:
        label.setProperty("kind", kind)
    if name:
        label.setObjectName(name)
    return label


def _framed(layout: QVBoxLayout | QHBoxLayout, kind: str) -> QFrame:
    frame = QFrame()
    frame.setProperty("kind", kind)
    layout.setContentsMargins(20, 16, 20, 16)
    frame.setLayout(layout)
    return frame


def pc_line(start: FirstStartState) -> str:
    """Return what this PC has, or why nothing can be recommended for it."""
    offers = start.offers
    if offers.state == "looking":
        return tr("Checking this PC…")
    if offers.state == "failed":
        return offers.problem
    text = welcome_pc_text(offers.pc)
    if offers.hero is None:
        text = tr("{0} No model in the catalog fits in its memory. The demo still runs.", text)
    if offers.pc.problem:
        text = tr("{0} Estimates assume CPU only ({1})", text, offers.pc.problem)
    return text


def problem_text(start: FirstStartState, missing: int) -> str:
    """Return why the download can't or shouldn't start and what to do, or "".

    `missing` is how many bytes of free space it lacks.
    """
    if missing:
        return tr("Not enough space: {0} more needed. Choose another folder or free up space.", show_bytes(missing))
    if start.is_offline:
        return tr("QwenDesk is offline. You can use models you have, or the demo.")
    if start.problem:
        return tr("{0} You can use models you have, or the demo.", start.problem)
    if start.synced_by:
        return tr("{0} syncs this folder and would upload the model. Choose another folder.", start.synced_by)
    return ""


def metered_text(start: FirstStartState, n_bytes: int) -> str:
    """Return what a download of `n_bytes` means on a metered connection; "" on any other."""
    if not start.is_metered:
        return ""
    return tr("This connection is metered: the download uses {0} of your data plan.", show_bytes(n_bytes))


def button_text(start: FirstStartState, hero: Offer) -> str:
    """Return what the main button does: it starts, pauses or resumes the download."""
    item = start.download_of(hero.recommended) if hero.recommended is not None else None
    if item is None:
        return tr("Download and start")
    if item.saved.state == "failed":
        return tr("Try again")
    return tr("Resume") if item.saved.state == "paused" else tr("Pause")
