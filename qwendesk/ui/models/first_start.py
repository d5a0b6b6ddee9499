"""The first start: one model for this PC and one button, and quieter ways on below. Never a dead end."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QProgressBar,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from qwendesk.core.units import show_bytes
from qwendesk.services.models.ranking import Offer
from qwendesk.services.models.starting import Start
from qwendesk.ui.bridges.offers import OffersBridge
from qwendesk.ui.bridges.start import StartBridge
from qwendesk.ui.engine.pack_row import PackRow
from qwendesk.ui.engine.row_texts import PackLine
from qwendesk.ui.kit.buttons import TextButton, describe, restyle
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.wording import (
    download_text,
    fit_details,
    fit_text,
    speed_text,
    time_text,
    welcome_pc_text,
)

_WIDEST = 680
_LINE = 28
"""Least height of a line of the list: those with a button need it."""


class FirstStart(QWidget):
    """Shown instead of the welcome while there is no model."""

    demo_asked = Signal()
    files_asked = Signal()
    """The person has files: the Models page finds them."""
    use_asked = Signal(str)
    """Path of a model on this PC."""
    engine_help_asked = Signal()
    shown = Signal()
    pack_asked = Signal(str, str)
    """The engine to fetch, and what: get, online, pause or discard."""

    def __init__(self, keeper: ThemeKeeper, start: StartBridge, offers: OffersBridge) -> None:
        super().__init__()
        self._keeper, self._bridge, self._offers = keeper, start, offers
        self._unused: tuple[str, ...] = ()
        self._pack: PackLine | None = None
        self._trouble = ""
        self.setProperty("kind", "page")
        self.setObjectName("start")
        self._pc = _label("lead", "start.pc")
        self._gpu_row = self._unused_gpu_row()
        self._found = _label("", "start.found")
        self._use = TextButton(keeper, kind="primary")
        describe(self._use, "start.use", tr("Use it"))
        self._use.clicked.connect(self._on_use)
        self._found_card = _framed(self._found_row(), "modelcard")
        self._card = self._hero_card()
        self._quick = TextButton(keeper)
        self._quick.clicked.connect(lambda: self._download(self._bridge.start.offers.quick))
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
        row.setContentsMargins(24, 8, 24, 8)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        area.setWidget(inside)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 0, 0, 0)
        around.addWidget(area)
        start.changed.connect(self._refresh)
        self._refresh()

    def show_unused_gpus(self, names: tuple[str, ...]) -> None:
        """Say that these cards are here and not used; nothing without any."""
        self._unused = names
        self._show_gpu_row()

    def show_pack(self, pack: PackLine | None, trouble: str) -> None:
        """The engine that can be fetched for these cards; `trouble` is why one that is here cannot use them."""
        self._pack, self._trouble = pack, trouble
        self._show_gpu_row()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.shown.emit()

    def _show_gpu_row(self) -> None:
        names, pack = tr(" and ").join(self._unused), self._pack
        self._gpu_row.setVisible(bool(names))
        self._pack_row.setVisible(pack is not None)
        self._gpu_help.setVisible(pack is None)
        if pack is not None:
            self._gpu.setText(
                tr("{0} needs an engine of its own, fetched once. What suits it is worked out again then; until then "
                   "everything below is counted for the processor.", names)
            )  # fmt: skip
            self._pack_row.show_line(pack, is_main=True)
            return
        text = tr(
            "{0} is in this PC, but the engine that is installed cannot use it. Everything works, slower, and is "
            "counted for the processor.",
            names,
        )
        self._gpu.setText(tr("{0} {1}", text, self._trouble) if self._trouble else text)

    def _unused_gpu_row(self) -> QWidget:
        self._gpu = _label("", "start.gpu")
        more = TextButton(self._keeper, tr("How to use it"), kind="link")
        describe(more, "start.gpu.help", tr("How to use it"), tr("Open the guide where it says how to get an engine"))
        more.clicked.connect(self.engine_help_asked)
        self._gpu_help = more
        self._pack_row = PackRow(self._keeper, "start.pack")
        self._pack_row.asked.connect(self._on_pack)
        row = QHBoxLayout()
        row.addWidget(self._gpu, 1)
        row.addWidget(more)
        holder = _framed(column := QVBoxLayout(), "modelcard")
        column.addLayout(row)
        column.addWidget(self._pack_row)
        self._pack_row.hide()
        holder.hide()
        return holder

    def _found_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.addWidget(self._found, 1)
        row.addWidget(self._use)
        return row

    def _hero_card(self) -> QFrame:
        keeper = self._keeper
        self._name = _label("heading", "start.name")
        self._fit = QLabel()
        self._fit.setObjectName("start.fit")
        self._fit.setProperty("chip", "plain")
        chip = QLabel(tr("Recommended"))
        chip.setProperty("chip", "accent")
        self._chip = chip
        head = QHBoxLayout()
        head.addWidget(self._name, 1)
        head.addWidget(chip)
        self._rows = QGridLayout()
        self._rows.setColumnMinimumWidth(0, 110)
        self._rows.setColumnStretch(1, 1)
        self._rows.setVerticalSpacing(6)
        self._model, self._model_size = self._row(0, tr("Model"), "model")
        self._mmproj, self._mmproj_size = self._row(2, tr("Pictures"), "mmproj")
        self._pictures = TextButton(keeper, kind="link")
        self._pictures.clicked.connect(lambda: self._offers.choose_pictures(not self._offers.offers.with_pictures))
        self._rows.addWidget(self._pictures, 2, 3, Qt.AlignmentFlag.AlignRight)
        self._folder, self._free = self._row(4, tr("Save to"), "folder")
        self._change = TextButton(keeper, tr("Change…"), kind="link")
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
        self._get = TextButton(keeper, tr("Download and start"), kind="primary")
        describe(self._get, "start.download", tr("Download and start"))
        self._get.clicked.connect(self._on_get)
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addLayout(head)
        column.addWidget(self._fit, 0, Qt.AlignmentFlag.AlignLeft)
        column.addLayout(self._rows)
        column.addWidget(self._expect)
        column.addWidget(self._bar)
        column.addWidget(self._problem)
        column.addWidget(self._get, 0, Qt.AlignmentFlag.AlignLeft)
        return _framed(column, "hero")

    def _row(self, row: int, title: str, name: str) -> tuple[QLabel, QLabel]:
        """One line of the list, with a rule below: what, which, how large."""
        label, which, size = _label("dim", ""), _label("", f"start.{name}"), _label("dim", f"start.{name}.size")
        label.setText(title)
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
        files = TextButton(self._keeper, tr("I have files"))
        tip = tr("Find the models of other apps on this PC, and use them where they are")
        describe(files, "start.files", tr("I have files"), tip)
        files.clicked.connect(self.files_asked)
        demo = TextButton(self._keeper, tr("Try the built-in demo (knows a few topics)"), kind="link")
        tip = tr("Tiny and quick; shows what the window can do, not what a model can")
        describe(demo, "start.demo", tr("Try the built-in demo"), tip)
        demo.clicked.connect(self.demo_asked)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self._quick)
        row.addWidget(files)
        row.addStretch(1)
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(demo, 0, Qt.AlignmentFlag.AlignLeft)
        return column

    def _refresh(self) -> None:
        start = self._bridge.start
        offers = start.offers
        self._pc.setText(_pc_line(start))
        self._show_found(start)
        hero = offers.hero
        self._card.setVisible(hero is not None)
        if hero is not None:
            self._show_hero(start, hero)
        quick = offers.quick
        self._quick.setVisible(quick is not None)
        if quick is not None and quick.recommended is not None:
            size = show_bytes(quick.total_bytes(quick.recommended))
            coming = start.coming(quick.recommended)
            ready = tr("Chat in a minute: {0}, {1}", quick.id, size)
            self._quick.setText(ready if coming is None else f"{quick.id}: {download_text(coming)}")
            self._quick.setEnabled(coming is None)
            describe(self._quick, "start.quick", self._quick.text(), tr("A small model to begin with"))

    def _show_found(self, start: Start) -> None:
        self._found_card.setVisible(bool(start.found))
        if start.found:
            best = start.found[0]
            more = tr(" and {0} more", len(start.found) - 1) if len(start.found) > 1 else ""
            self._found.setText(tr("On this PC already: {0}, {1}{2}", best.name, show_bytes(best.n_bytes), more))
            self._use.setText(tr("Use it"))
            self._use.setToolTip(best.path)

    def _show_hero(self, start: Start, hero: Offer) -> None:
        quant = hero.recommended
        if quant is None:
            return
        self._name.setText(tr("{0}, reads pictures", hero.id) if hero.mmproj_bytes else hero.id)
        text, tone = fit_text(quant.fit)
        self._fit.setText(text)
        self._fit.setToolTip(fit_details(quant.fit))
        restyle(self._fit, "chip", tone)
        self._model.setText(quant.quant)
        self._model_size.setText(show_bytes(quant.n_bytes))
        self._mmproj.setText(hero.mmproj_path.rpartition("/")[2].removesuffix(".gguf") or tr("None"))
        self._mmproj_size.setText(show_bytes(hero.mmproj_bytes) if hero.mmproj_bytes else "")
        words = tr("Without pictures") if start.offers.with_pictures else tr("With pictures")
        self._pictures.setText(words)
        describe(self._pictures, "start.pictures", words, tr("Fetch the picture file too, or not"))
        self._folder.setText(start.folder)
        self._free.setText("" if start.free_bytes is None else tr("{0} free", show_bytes(start.free_bytes)))
        item = start.coming(quant)
        missing = start.missing_bytes(hero)
        lines = [
            time_text(hero.total_bytes(quant), start.measured_bytes_per_s) if item is None else download_text(item)
        ]
        lines.append(speed_text(start.offers.speed(hero)))
        self._expect.setText(" ".join(line for line in lines if line))
        self._bar.setVisible(item is not None)
        if item is not None:
            self._bar.setValue(round(1000 * item.n_done / max(item.kept.n_bytes, 1)))
        self._problem.setText(
            _problem(start, missing) if item is None or item.kept.state != "failed" else item.kept.sentence
        )
        self._problem.setVisible(bool(self._problem.text()))
        self._get.setEnabled(item is not None or not missing)
        self._get.setText(_button_text(start, hero))
        self._get.setAccessibleName(self._get.text())

    def _on_pack(self, what: str) -> None:
        if self._pack is not None:
            self.pack_asked.emit(self._pack.name, what)

    def _on_get(self) -> None:
        hero = self._bridge.start.offers.hero
        if hero is None or hero.recommended is None:
            return
        item = self._bridge.start.coming(hero.recommended)
        if item is None:
            self._bridge.download(hero)
        else:
            self._bridge.pause(item)

    def _download(self, offer: Offer | None) -> None:
        if offer is not None:
            self._bridge.download(offer)

    def _on_use(self) -> None:
        if self._bridge.start.found:
            self.use_asked.emit(self._bridge.start.found[0].path)

    def _choose_folder(self) -> None:
        dialog = QFileDialog(self, tr("Save models to"), self._bridge.start.folder)
        dialog.setObjectName("start.folderdialog")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.fileSelected.connect(self._bridge.choose_folder)
        dialog.open()


def _pc_line(start: Start) -> str:
    offers = start.offers
    if offers.state == "looking":
        return tr("Looking at this PC…")
    if offers.state == "failed":
        return offers.problem
    text = welcome_pc_text(offers.pc)
    if offers.hero is None:
        text = tr("{0} No model of the catalog fits into its memory. The demo still runs.", text)
    if offers.pc.problem:
        text = tr("{0} The engine could not be asked ({1}), so this is counted for the CPU.", text, offers.pc.problem)
    return text


def _problem(start: Start, missing: int) -> str:
    if missing:
        return tr("This drive lacks {0}. Choose another folder, or make room.", show_bytes(missing))
    if start.is_offline:
        return tr("QwenDesk is set to offline, so nothing is downloaded. Files you have and the demo work.")
    if start.problem:
        return tr("{0} Files you have and the demo work without a download.", start.problem)
    return ""


def _button_text(start: Start, hero: Offer) -> str:
    item = start.coming(hero.recommended) if hero.recommended is not None else None
    if item is None:
        return tr("Download and start")
    if item.kept.state == "failed":
        return tr("Try again")
    return tr("Go on") if item.kept.state == "paused" else tr("Pause")


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
