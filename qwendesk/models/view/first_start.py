"""The first start: what this is in a sentence, the best model for the PC with a button, and other ways to begin.

The card is as tall while it looks at the PC as with its offer or a download, so nothing moves under the pointer. The
file has over 500 lines, because each part of the card stands beside what fills it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QProgressBar, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr, unbroken
from qwendesk.core.units import GIB, show_bytes
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.models.first_start import FirstStartState
from qwendesk.models.offers import unused_gpus
from qwendesk.models.ranking import Offer, QuantOffer
from qwendesk.models.services import ModelServices
from qwendesk.models.view.first_start_parts import (
    ActionLayout,
    EngineTrouble,
    Fact,
    LookingBars,
    StartChoice,
    details_grid,
    value_label,
)
from qwendesk.models.view.first_start_texts import (
    VERY_LONG,
    Screen,
    button_text,
    doing_text,
    found_text,
    hero_download,
    length_fact,
    looking_text,
    note_of,
    nothing_text,
    pc_text,
    pictures_fact,
    screen_of,
    speed_fact,
)
from qwendesk.models.view.found_models import FoundModels
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.offer_texts import (
    download_text,
    fit_details,
    introduction_text,
    memory_text,
    rate_text,
    time_text,
)
from qwendesk.models.view.speed_texts import expected_text, short_speed_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import ChevronButton, describe, restyle
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.kit import (
    GAP,
    MARGIN,
    READING_WIDTH,
    STRETCH,
    IconLabel,
    button,
    card,
    centred,
    column,
    keep_room,
    label,
    may_shrink,
    paragraph,
    row,
    rule,
)
from qwendesk.widgets.layouts import EqualColumnsLayout, FlowLayout, ResponsivePairLayout, SteadyStack, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tab_order import is_text_field
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel
from qwendesk.widgets.theme_keeper import app_theme, current_theme

if TYPE_CHECKING:
    from qwendesk.engines.view.engines_presenter import EnginesPresenter

# Height of the card without its details, and of the whole page, in pixels at 100% text size.
_CARD, _PAGE = 280, 600
# Least width in pixels of a fact, of a choice, of a column of the details, and of the sentence beside a button.
_LEAST_FACT, _LEAST_CHOICE, _LEAST_DETAILS, _LEAST_NOTE = 146, 300, 300, 260
_BAR = 8
_QUICK = "Qwen3.5-2B"
# What a usual offer says: its height is kept for the offer that comes.
_SAMPLE, _SAMPLE_TOK_S, _SAMPLE_BYTES = "Qwen3.6-35B-A3B", 118.0, 20 * GIB


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
        self._actions, self._navigation = actions, navigation
        self._is_quick_asked = False
        """Whether the small model was asked for before it is known which file of it to take."""
        self._is_found_open = False
        """Whether the list of what other programs left is shown."""
        self._has_focused = False
        """Whether the main button got the focus since the page was shown."""
        self.setProperty("kind", "page")
        self.setObjectName("start")
        self._pc = ElidedLabel("start.pc", kind="dim")
        self._pc.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._engine_row = EngineTrouble(find_engines, navigation)
        self._card = card(self._card_content(), "modelcard", name="start.card")
        self._found = self._found_models()
        self._choices = self._other_choices()
        self._last_line = self._demo_line()
        self._content = column(
            paragraph(tr("Chat with Qwen on your own PC."), "title"),
            4,
            paragraph(tr("Free, private, works offline."), "subtitle"),
            26,
            row(label(tr("Best for your PC"), "heading"), self._pc, spacing=GAP),
            8,
            self._card,
            GAP,
            self._choices,
            self._found,
            GAP,
            self._last_line,
            GAP,
            self._engine_row,
            STRETCH,
            spacing=0,
        )
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside = widget_with(centred(widget_with(self._content), READING_WIDTH, margin=MARGIN))
        inside.setProperty("kind", "column")
        area.setWidget(inside)
        self.setLayout(column(area))
        app_theme().follow(self, self._fit_heights)
        bind(self, service.state, self._show)
        bind(self, services.offers.state, lambda _offers: self._show_engine_row(snapshot.value))
        bind(self, snapshot, self._show_engine_row)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.update_free_space()
        self._has_focused = False
        # After the event, when the window has decided where its focus is.
        QTimer.singleShot(0, self, self._focus_main)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange:
            QTimer.singleShot(0, self, self._focus_main)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_heights()

    def update_free_space(self) -> None:
        self._tasks.start(self._service.update_free_space())

    def _fit_heights(self) -> None:
        """Place the page a little above the middle, whatever it shows, and scale the card with the text."""
        theme = current_theme()
        self._card.setMinimumHeight(theme.px(_CARD))
        above = min(max((self.height() - theme.px(_PAGE)) // 2, MARGIN), 4 * GAP)
        self._content.setContentsMargins(0, above, 0, MARGIN)

    def _focus_main(self) -> None:
        """Focus the main button once each time the page is shown, so that Enter starts. Leave the user's own focus."""
        focus: QWidget | None = self.window().focusWidget()
        is_used = focus is not None and focus.isVisible() and (self.isAncestorOf(focus) or is_text_field(focus))
        if not self._has_focused and self.isVisible() and self._main.isEnabled() and not is_used:
            self._main.setFocus()
            # Before that, Qt gives the focus to the first control of the window.
            self._has_focused = self.window().isActiveWindow()

    def _show_engine_row(self, snapshot: Snapshot | None) -> None:
        offers = self._offers.state.value
        self._engine_row.show_trouble(offers.pc.problem, tr(" and ").join(unused_gpus(offers, snapshot)))

    # The card

    def _card_content(self) -> QVBoxLayout:
        self._name = label(kind="result", name="start.name", wraps=True)
        self._about, self._doing = (paragraph(kind="dim", name=f"start.{each}") for each in ("about", "doing"))
        self._lead = SteadyStack(self._about, self._doing)
        self._facts = {each: Fact(each) for each in ("speed", "length", "pictures", "size")}
        facts = EqualColumnsLayout(least=_LEAST_FACT, spacing=12)
        for fact in self._facts.values():
            facts.addWidget(fact)
        self._bar = QProgressBar()
        describe(self._bar, "start.progress", tr("Download"))
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(_BAR)
        self._bar.setMaximum(1000)
        self._done, self._rate = label(name="start.done"), label(kind="dim", name="start.rate", wraps=True)
        progress = column(self._bar, ResponsivePairLayout(self._done, self._rate, least=120), STRETCH)
        self._middle = SteadyStack(widget_with(facts), widget_with(progress))
        words = widget_with(column(self._name, self._lead, 16, self._middle, STRETCH, spacing=4))
        self._top = SteadyStack(LookingBars(), words)
        self._fill_with_sample()
        self._details = self._details_panel()
        self._details.hide()
        return column(self._top, 16, self._action_row(), self._details, 12, widget_with(self._folder_row()), spacing=0)

    def _fill_with_sample(self) -> None:
        """Fill the hidden page of the offer with usual texts, so that the page of the bars has its height."""
        self._name.setText(_SAMPLE)
        self._about.setText(tr("A clever all-rounder: explains, writes, codes and understands your screenshots."))
        self._facts["speed"].show_fact("speed", *speed_fact(_SAMPLE_TOK_S))
        self._facts["length"].show_fact("book", *length_fact(VERY_LONG))
        self._facts["pictures"].show_fact("picture", *pictures_fact(sees=True))
        self._facts["size"].show_fact("download", "", tr("{0} to download", time_text(_SAMPLE_BYTES)))

    def _action_row(self) -> ActionLayout:
        self._main = button("", "start.download", kind="primary")
        self._main.setProperty("big", "true")
        self._main.setAutoDefault(True)
        self._main.clicked.connect(self._on_main)
        self._cancel = button(tr("Cancel"), "start.cancel", kind="quiet", tip=tr("Stop the download and delete it"))
        self._cancel.clicked.connect(self._on_cancel)
        self._note_icon = IconLabel()
        self._note = label(name="start.problem", wraps=True)
        self._open = ChevronButton(tr("Details"), kind="link")
        describe(self._open, "start.details", tr("Details"), tr("Files, memory, speed and source"))
        self._open.clicked.connect(lambda: self._show_details(not self._details.isVisibleTo(self)))
        keep_room(self._open)
        longest = label(looking_text(), wraps=True)
        note = SteadyStack(widget_with(row(self._note_icon, self._note, STRETCH)), widget_with(row(24, longest)))
        buttons = widget_with(row(self._main, self._cancel))
        return ActionLayout(buttons, note, self._open, least=_LEAST_NOTE)

    def _folder_row(self) -> FlowLayout:
        self._folder, self._free = ElidedLabel("start.folder", kind="small"), label(kind="small", name="start.free")
        may_shrink(self._folder)
        self._change = button(tr("Change…"), "start.change", kind="link", said=tr("Save to another folder"))
        self._change.setProperty("compact", "true")
        keep_room(self._change)
        self._change.clicked.connect(self._choose_folder)
        flow = FlowLayout(spacing=4)
        for widget in (self._folder, self._free, self._change):
            flow.addWidget(widget)
        return flow

    def _details_panel(self) -> QWidget:
        self._model, self._mmproj, self._source = (value_label(each) for each in ("model", "mmproj", "source"))
        self._speed, self._memory, self._licence = (value_label(each) for each in ("expect", "fit", "licence"))
        self._pictures = button("", "start.pictures", kind="link")
        self._pictures.clicked.connect(self._toggle_pictures)
        left, right = details_grid(), details_grid()
        rows = ((tr("Model"), self._model), (tr("Pictures"), self._mmproj), (tr("Source"), self._source))
        for place, (title, value) in enumerate(rows):
            left.addWidget(label(title, "dim"), place, 0)
            left.addWidget(value, place, 1)
        left.addWidget(self._pictures, 1, 2, Qt.AlignmentFlag.AlignRight)
        rows = ((tr("Speed"), self._speed), (tr("Memory"), self._memory), (tr("Licence"), self._licence))
        for place, (title, value) in enumerate(rows):
            right.addWidget(label(title, "dim"), place, 0)
            right.addWidget(value, place, 1)
        columns = EqualColumnsLayout(least=_LEAST_DETAILS, spacing=32)
        columns.addWidget(widget_with(left))
        columns.addWidget(widget_with(right))
        return widget_with(column(16, rule(), 12, columns, spacing=0))

    def _show_details(self, is_open: bool) -> None:
        self._details.setVisible(is_open)
        self._open.show_chevron("up" if is_open else "down")

    # The other ways to begin

    def _other_choices(self) -> QWidget:
        self._quick = StartChoice("quick", "speed", tr("Something smaller first"))
        self._quick.button.clicked.connect(self._on_quick)
        self._files = StartChoice("files", "folder", tr("I have models"))
        self._files.button.clicked.connect(self._on_files)
        self._use = self._files.add_button(tr("Load"), "start.use")
        self._use.clicked.connect(self._on_use)
        demo = StartChoice("demo.open", "chat", tr("Try the demo"))
        demo.show_words(
            tr("Nothing to download. Knows only a few topics."), tr("Open demo"), tr("Open the built-in demo")
        )
        demo.button.clicked.connect(self._navigation.demo_asked)
        self._demo = demo
        layout = EqualColumnsLayout(least=_LEAST_CHOICE, spacing=GAP)
        for choice in (self._quick, self._files, demo):
            layout.addWidget(choice)
        choices = widget_with(layout)
        choices.setObjectName("start.choices")
        return choices

    def _found_models(self) -> QWidget:
        self._found_list = FoundModels()
        self._found_list.load_asked.connect(self._actions.load)
        self._found_list.all_asked.connect(self._show_my_models)
        holder = widget_with(column(self._found_list, margins=(0, GAP, 0, 0)))
        holder.hide()
        return holder

    def _demo_line(self) -> QWidget:
        tip = tr("Tiny and fast. It shows the app, not what a real model can do.")
        demo = button(tr("Try the built-in demo"), "start.demo", kind="link", tip=tip)
        demo.clicked.connect(self._navigation.demo_asked)
        self._demo_words = (
            label(tr("No internet right now?"), "dim"),
            demo,
            label(tr("It's tiny and knows only a few topics."), "dim", name="start.demo.about", wraps=True),
        )
        self._promise = label(tr("Nothing you type leaves this PC."), "dim", wraps=True)
        flow = FlowLayout(spacing=4)
        for widget in (*self._demo_words, self._promise):
            flow.addWidget(widget)
        line = widget_with(flow)
        line.setObjectName("start.last")
        return line

    # What is shown

    def _show(self, start: FirstStartState) -> None:
        screen = screen_of(start)
        hero = start.offers.hero
        self._pc.setText(pc_text(start))
        self._pc.setToolTip(self._pc.text())
        self._top.show_page(int(screen != "looking"))
        restyle(self._card, "kind", "hero" if hero is not None else "modelcard")
        quant = hero.recommended if hero is not None else None
        item = start.download_of(quant) if quant is not None else None
        self._middle.setVisible(screen != "nothing")
        self._show_action(screen, start, item)
        self._show_folder(screen, start)
        if hero is not None and quant is not None:
            self._show_hero(start, hero, quant, item)
        elif screen == "nothing":
            self._name.setText(tr("No model fits this PC"))
            self._about.setText(nothing_text(start))
        self._show_choices(screen, start, item)
        self._focus_main()
        if self._is_quick_asked and screen != "looking":
            self._is_quick_asked = False
            self._download(start.offers.quick)

    def _show_action(self, screen: Screen, start: FirstStartState, item: DownloadItem | None) -> None:
        self._main.setVisible(screen != "nothing")
        self._main.setText(button_text(item))
        restyle(self._main, "kind", "" if screen == "busy" else "primary")
        describe(self._main, "start.download", self._main.text())
        missing = start.missing_bytes(start.offers.hero) if start.offers.hero is not None else 0
        self._main.setEnabled(screen != "looking" and (item is not None or not missing))
        self._cancel.setVisible(screen == "busy")
        self._open.setVisible(screen in ("offer", "stopped") and item is None)
        if item is not None:
            self._show_details(False)
        text, icon_name, role = note_of(screen, start, item, missing)
        self._note.setText(text)
        restyle(self._note, "kind", "" if icon_name == "warning" else "dim")
        self._note_icon.setVisible(bool(icon_name))
        self._note_icon.show_icon(icon_name, role)

    def _show_folder(self, screen: Screen, start: FirstStartState) -> None:
        self._folder.setText(tr("Saved to {0}", start.folder) if start.folder else "")
        self._folder.setToolTip(start.folder)
        free = tr("· {0} free", show_bytes(start.free_bytes)) if start.free_bytes is not None else ""
        self._free.setText(free)
        self._change.setVisible(screen != "busy")

    def _show_hero(self, start: FirstStartState, hero: Offer, quant: QuantOffer, item: DownloadItem | None) -> None:
        sees = bool(quant.mmproj_bytes)
        self._name.setText(hero.id)
        self._about.setText(introduction_text(hero.model, with_pictures=sees))
        self._doing.setText(doing_text(item))
        self._lead.show_page(int(bool(self._doing.text())))
        is_busy = item is not None and item.saved.state != "failed"
        self._middle.show_page(int(is_busy))
        if item is not None:
            self._bar.setValue(round(1000 * item.n_done / max(item.saved.n_bytes, 1)))
            done, total = show_bytes(item.n_done), show_bytes(item.saved.n_bytes)
            self._done.setText(tr("{0} of {1}", done, total))
            self._rate.setText(rate_text(item))
        facts = self._facts
        facts["speed"].show_fact("speed", *speed_fact(quant.likely_tok_s))
        facts["length"].show_fact("book", *length_fact(quant.fit.n_ctx))
        facts["pictures"].show_fact("picture" if sees else "picture_off", *pictures_fact(sees=sees))
        seconds = time_text(quant.total_bytes, start.measured_bytes_per_s)
        facts["size"].show_fact("download", show_bytes(quant.total_bytes), tr("{0} to download", seconds))
        self._model.setText(f"{quant.quant} · {show_bytes(quant.n_bytes)}")
        self._mmproj.setText(tr("vision file · {0}", show_bytes(quant.mmproj_bytes)) if sees else tr("None"))
        self._mmproj.setToolTip(quant.mmproj_path)
        self._source.setText(tr("{0} on Hugging Face", quant.repo.partition("/")[0]))
        self._source.setToolTip(quant.repo)
        words = tr("Skip") if start.offers.with_pictures else tr("Add")
        said = tr("Skip the vision file") if start.offers.with_pictures else tr("With pictures")
        self._pictures.setText(words)
        describe(self._pictures, "start.pictures", said, tr("Download with or without the vision file (mmproj)"))
        self._speed.setText(unbroken(short_speed_text(quant)))
        self._speed.setToolTip(expected_text(hero, quant))
        self._memory.setText(memory_text(quant.fit))
        self._memory.setToolTip(fit_details(quant.fit))
        self._licence.setText(hero.model.licence.name)

    def _show_choices(self, screen: Screen, start: FirstStartState, item: DownloadItem | None) -> None:
        quick = start.offers.quick
        has_quick = screen == "looking" or (quick is not None and screen != "stopped")
        has_demo = screen in ("busy", "stopped") or not has_quick
        self._quick.setVisible(has_quick)
        self._files.setVisible(not (has_quick and has_demo))
        self._demo.setVisible(has_demo)
        for widget in self._demo_words:
            widget.setVisible(not has_demo)
        self._promise.setVisible(has_demo)
        self._show_quick(start, quick, is_meanwhile=item is not None)
        self._show_found(start)

    def _show_quick(self, start: FirstStartState, quick: Offer | None, *, is_meanwhile: bool) -> None:
        """Show the small model with its size, or the progress of its download."""
        quant = quick.recommended if quick is not None else None
        coming = start.download_of(quant) if quant is not None else None
        name = quick.id if quick is not None else _QUICK
        self._quick.title.setText(tr("Chat meanwhile") if is_meanwhile else tr("Something smaller first"))
        if coming is not None:
            text = f"{name}: {download_text(coming)}"
        elif quant is None:
            text = tr("{0}, ready in a few minutes. Simple answers.", name)
        else:
            text = tr(
                "{0}, ready in {1}. Simple answers.", name, time_text(quant.total_bytes, start.measured_bytes_per_s)
            )
        get = tr("Get {0}", show_bytes(quant.total_bytes)) if quant is not None else tr("Get it")
        self._quick.show_words(text, get, tr("Download {0}, a small model to start with", name))
        self._quick.button.setEnabled(coming is None and not self._is_quick_asked)

    def _show_found(self, start: FirstStartState) -> None:
        self._use.setVisible(bool(start.found))
        self._found_list.show_apps(start.apps)
        self._found.setVisible(bool(start.apps) and self._is_found_open)
        if not start.apps:
            self._files.title.setText(tr("I have models"))
            tip = tr("Use the models of other apps on this PC")
            self._files.show_words(tr("From LM Studio, Ollama, Jan or a folder of yours."), tr("Find them"), tip)
            return
        self._files.title.setText(tr("Found on this PC"))
        words = tr("Show all") if start.found else tr("Show why")
        words = tr("Hide") if self._is_found_open else words
        self._files.show_words(found_text(start), words, tr("Show the models on this PC"))
        if start.found:
            best = start.found[0]
            describe(self._use, "start.use", tr("Load {0}", best.name), best.path)

    # What the buttons do

    def _toggle_pictures(self) -> None:
        with_pictures = not self._offers.state.value.with_pictures
        self._tasks.start(self._offers.set_pictures(with_pictures=with_pictures))

    def _on_main(self) -> None:
        start = self._service.state.value
        item = hero_download(start)
        if item is None:
            self._download(start.offers.hero)
        else:
            self._tasks.start(self._service.pause_or_resume(item))

    def _on_cancel(self) -> None:
        item = hero_download(self._service.state.value)
        if item is not None:
            self._tasks.start(self._service.cancel(item))

    def _on_quick(self) -> None:
        start = self._service.state.value
        if start.offers.state == "looking":
            self._is_quick_asked = True
            self._show(start)
        else:
            self._download(start.offers.quick)

    def _download(self, offer: Offer | None) -> None:
        if offer is not None:
            self._tasks.start(self._service.download(offer))

    def _on_files(self) -> None:
        """Show what was found, or hide it again. If nothing was, My models says where it was looked for."""
        start = self._service.state.value
        if not start.apps:
            self._show_my_models()
            return
        self._is_found_open = not self._is_found_open
        self._show_found(start)

    def _show_my_models(self) -> None:
        self._navigation.models_tab_asked.emit("mine")

    def _on_use(self) -> None:
        found = self._service.state.value.found
        if found:
            self._actions.load(found[0].path)

    def _choose_folder(self) -> None:
        def choose(folder: str) -> None:
            self._tasks.start(self._service.choose_folder(folder))

        title, begin_in = tr("Choose where to save models"), self._service.state.value.folder
        ask_for_folder(self, "start.folderdialog", title, choose, kind="models", begin_in=begin_in)
