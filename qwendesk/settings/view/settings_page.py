"""The settings page: all options of the app by section, with a search, and the cards of other features."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from PySide6.QtCore import QMargins, QPoint, QSignalBlocker, Qt, QTimer
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption
from qwendesk.core.flags import flag_note, search_flag
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import join_list, mark, tr
from qwendesk.settings.deletion import PrivacyService
from qwendesk.settings.service import SettingsService
from qwendesk.settings.view.privacy_section import PrivacySection
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.controls import ComboBox, Switch, add_clear_button
from qwendesk.widgets.icons import icon
from qwendesk.widgets.kit import GAP, MARGIN, PAGE_WIDTH, READING_WIDTH, STRETCH, centred, column, label, paragraph, row
from qwendesk.widgets.layouts import SCROLL_BAR, DensitySpacing, ResponsivePairLayout, steady_scroll_area, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.rows.choice_row import LanguageRow
from qwendesk.widgets.rows.option_texts import section_slug
from qwendesk.widgets.rows.row_factory import LinkRow, make_row
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.tab_order import tab_stops_in
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# The sections in the order of the page, with their icons. Most have options; all may have cards of features.
_SECTIONS: Final = (
    ("Appearance", "theme"),
    ("Chats", "chat"),
    ("Models", "model"),
    ("Network", "page"),
    ("Web search", "search"),
    (mark("Tools"), "tool"),
    ("Games", "game"),
    ("Start", "resume"),
    ("Server", "server"),
    ("Updates", "again"),
    (mark("Privacy"), "privacy"),
)
# The gap between the list of sections and the cards, and the width of the list, in logical pixels.
_LIST_GAP = 24
_LIST_WIDTH = PAGE_WIDTH - READING_WIDTH - _LIST_GAP
_CARD_GAP = 24
# Least width of the search field and the switch beside it, below which they get a line of their own.
_NARROWEST_SEARCH = 230


class SettingsPage(QWidget):
    """Shows basic and changed options. Advanced shows the others too, and the search finds all of them."""

    def __init__(
        self,
        settings: SettingsService,
        privacy: PrivacyService,
        cards: Mapping[str, Sequence[Callable[[], TitledCard]]],
        remarks: Callable[[], dict[str, str]],
        navigation: Navigation,
    ) -> None:
        """`cards` makes those of other features, by the section to which they belong. `add_sections` adds them.

        `remarks` returns, by key, why options that are on have no effect on this PC.
        """
        super().__init__()
        self._settings, self._remarks, self._navigation = settings, remarks, navigation
        self._makers = {**cards, "Privacy": (lambda: PrivacySection(privacy),)}
        self.setProperty("kind", "page")
        self._rows: dict[str, SettingRow] = {}
        self._options: dict[str, TitledCard] = {}
        """The cards with options, by their sections."""
        self._groups: list[list[TitledCard]] = [[] for _ in _SECTIONS]
        self._n_added = 0
        """The number of sections that were added. The list has the others, too, so that it stays as it is."""
        self._sought: int | None = None
        """A section that the user wanted to see before it was added."""
        self._nothing = paragraph(kind="lead", name="settings.nothing")
        self._note = paragraph(kind="error", name="settings.note")
        self._nothing.hide()
        self._note.hide()
        self._column = column(self._note, self._nothing, STRETCH, spacing=_CARD_GAP)
        self._inner, self._head = widget_with(self._column), self._make_head()
        self._spacing = DensitySpacing(self._column)
        holder = widget_with(centred(self._inner, PAGE_WIDTH, margin=MARGIN))
        holder.setProperty("kind", "column")
        self._area = steady_scroll_area(holder)
        self._list.setParent(self._area)
        head_row = centred(self._head, PAGE_WIDTH, margin=MARGIN)
        head_row.setContentsMargins(MARGIN, 0, MARGIN + SCROLL_BAR, 0)
        self.setLayout(column(head_row, self._area, spacing=GAP, margins=(0, 16, 0, 0)))
        self._area.verticalScrollBar().valueChanged.connect(self._mark_place)
        app_theme().follow(self, self._arrange)
        bind(self, settings.problem, self._show_problem)

    def add_sections(self) -> Iterator[None]:
        """Add the sections. Yield after each row and card, because all of them together take a quarter of a second."""
        for place, (name, _) in enumerate(_SECTIONS):
            yield from self._add_section(name, self._groups[place])
            self._n_added = place + 1
        bind(self, self._settings.state, self._show_values)
        self._filter()
        sought = self._head_of(self._sought) if self._sought is not None else None
        if sought is not None:
            self._open(sought)

    def _add_section(self, name: str, group: list[TitledCard]) -> Iterator[None]:
        entries = [entry for entry in table(AppOptions).values() if entry.setting.section == name]
        if entries:
            options = TitledCard(f"settings.{section_slug(entries[0])}", tr(name))
            self._place(options)
            for entry in entries:
                self._rows[entry.key] = made = self._make_row(entry)
                options.add(made)
                yield
            self._options[name] = options
            group.append(options)
            self._filter()
        for make in self._makers.get(name, ()):
            card = make()
            self._place(card)
            group.append(card)
            self._filter()
            yield

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        """Begin with all settings each time the page is opened, not with what was searched before."""
        super().showEvent(event)
        if not event.spontaneous():
            self._search.clear()

    def tab_stops(self) -> list[QWidget]:
        """Return what the Tab key stops at: the list of sections lies over the cards, but comes before them."""
        lists = [each for each in (self._list,) if each.isVisible()]
        return [*tab_stops_in(self._head), *lists, *tab_stops_in(self._inner)]

    def open_at(self, part: str) -> None:
        """Scroll to one card: "token", "folders", "games", "server" or "privacy"."""
        self._search.clear()
        card = next(card for card in self._cards if card.objectName() == f"settings.{part}")
        self._open(card)
        field = card.focusProxy()
        if field is not None:
            field.setFocus()

    @property
    def _cards(self) -> list[TitledCard]:
        return [card for group in self._groups for card in group]

    def _make_head(self) -> QWidget:
        self._title = label(tr("Settings"), "pagetitle")
        self._list, self._menu = SectionList(), ComboBox()
        self._menu.setModel(self._list.model())
        self._menu.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToContents)
        describe(self._menu, "settings.menu", tr("Sections"), tr("Go to a section"))
        self._menu.activated.connect(self._go_to_section)
        self._list.itemClicked.connect(lambda item: self._go_to_section(self._list.row(item)))
        self._list.currentRowChanged.connect(self._go_to_section)
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search settings"))
        add_clear_button(self._search)
        describe(
            self._search,
            "settings.search",
            tr("Search settings"),
            tr("By name, help, or flag of llama.cpp, Ollama or vLLM"),
        )
        self._search.textChanged.connect(self._filter)
        self._advanced = Switch()
        describe(self._advanced, "settings.advanced", tr("Advanced"), tr("Show the options few people need"))
        self._advanced.toggled.connect(self._filter)
        name = label(tr("Advanced"))
        name.setBuddy(self._advanced)
        self._first = widget_with(row(self._title, self._menu, STRETCH, spacing=GAP))
        second = widget_with(row(self._search, 8, name, self._advanced))
        return widget_with(
            ResponsivePairLayout(self._first, second, least=_NARROWEST_SEARCH, spacing=_LIST_GAP, second_grows=True)
        )

    def _place(self, card: TitledCard) -> None:
        """Put a card below the others. It is hidden until it is filtered."""
        card.hide()
        self._column.insertWidget(self._column.count() - 1, card)

    def _make_row(self, entry: Entry) -> SettingRow:
        made = make_row(entry, "settings")
        made.show_value(getattr(self._settings.options, entry.key))
        if isinstance(made, LinkRow):
            made.followed.connect(self._navigation.page_asked)
        if isinstance(made, LanguageRow):
            made.restart_asked.connect(self._navigation.restart_asked)
        made.chosen.connect(self._change_function(entry.key))
        made.reset_requested.connect(lambda: self._settings.reset(entry.key))
        return made

    def _change_function(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            try:
                self._settings.change({key: value})
            except BadOption as error:
                self._rows[key].refuse(error.sentence)
            # Even if nothing changed, the editor must show the value that is in effect.
            if getattr(self._settings.options, key) == value:
                self._rows[key].show_value(value)

        return change

    def _show_values(self, options: AppOptions) -> None:
        for key, each in self._rows.items():
            each.show_value(getattr(options, key))
        for key, remark in self._remarks().items():
            self._rows[key].refuse(remark)

    def _filter(self) -> None:
        query, shows_advanced = self._search.text().strip(), self._advanced.isChecked()
        for name, card in self._options.items():
            rows = [each for each in self._rows.values() if each.entry.setting.section == name]
            card.show_rows([(each, self._is_wanted(each, query, shows_advanced=shows_advanced)) for each in rows])
        for each in self._rows.values():
            each.show_found(query)
        for card in self._cards:
            if card not in self._options.values():
                card.setVisible(not query or card.matches(query))
                card.show_found(query)
        self._nothing.setText(_nothing_text(query))
        self._nothing.setVisible(all(card.isHidden() for card in self._cards))
        self._list.show_sections(
            [place >= self._n_added or any(not card.isHidden() for card in group)
             for place, group in enumerate(self._groups)]
        )  # fmt: skip
        self._arrange()
        self._mark_place()

    def _is_wanted(self, shown: SettingRow, query: str, *, shows_advanced: bool) -> bool:
        if query:
            return shown.matches(query)
        is_changed = getattr(self._settings.options, shown.entry.key) != shown.entry.default
        return shown.entry.setting.basic or shows_advanced or is_changed

    def _show_problem(self, sentence: str) -> None:
        self._note.setText(sentence)
        self._note.setVisible(bool(sentence))

    def _arrange(self) -> None:
        """Show the sections as a list beside the cards, or as a menu in the head if there is no room for it.

        All widths grow with the text, so that the controls beside the texts leave them enough room.
        """
        theme, room = current_theme(), self.width() - SCROLL_BAR
        page, list_width = theme.px(PAGE_WIDTH), theme.px(_LIST_WIDTH)
        for each in (self._head, self._inner):
            each.setMaximumWidth(page)
        is_wide = room >= page + 2 * MARGIN
        self._list.setVisible(is_wide)
        self._menu.setHidden(is_wide)
        self._first.setFixedWidth(list_width) if is_wide else _free_width(self._first)
        self._spacing.set_base(QMargins(list_width + _LIST_GAP if is_wide else 0, 4, 0, 24), _CARD_GAP)
        height = min(self._list.wanted_height(), self._area.height())
        self._list.setGeometry((room - page) // 2, 4, list_width, height)
        self._list.raise_()

    def _open(self, card: TitledCard) -> None:
        """Go to a card now, and again once a page that is shown for the first time has been arranged."""
        self._go_to(card)
        QTimer.singleShot(0, card, lambda: self._go_to(card))

    def _go_to(self, card: TitledCard) -> None:
        """Scroll a card to the top, and mark its section."""
        bar = self._area.verticalScrollBar()
        self._area.ensureWidgetVisible(card, 0, 0)
        bar.setValue(bar.value() + card.mapTo(self._area.viewport(), QPoint()).y() - 4)
        self._mark(next(place for place, group in enumerate(self._groups) if card in group))

    def _go_to_section(self, place: int) -> None:
        head = self._head_of(place)
        if head is not None:
            self._go_to(head)
        elif place >= self._n_added:
            self._sought = place

    def _mark_place(self) -> None:
        """Mark the last section whose head has passed the top third of what is shown."""
        shown = [place for place in range(len(self._groups)) if self._head_of(place) is not None]
        passed = [place for place in shown if self._has_passed(place)]
        if shown:
            self._mark(passed[-1] if passed and self._area.verticalScrollBar().value() else shown[0])

    def _head_of(self, place: int) -> TitledCard | None:
        return next((card for card in self._groups[place] if not card.isHidden()), None)

    def _has_passed(self, place: int) -> bool:
        head, port = self._head_of(place), self._area.viewport()
        return head is not None and head.mapTo(port, QPoint()).y() <= port.height() / 3

    def _mark(self, place: int) -> None:
        with QSignalBlocker(self._list):
            self._list.setCurrentRow(place)
        self._menu.setCurrentIndex(place)


def _free_width(widget: QWidget) -> None:
    widget.setMinimumWidth(0)
    widget.setMaximumWidth(16_777_215)


def _nothing_text(query: str) -> str:
    """Return what to say where no setting matches: where the option of a flag is, or why it has no effect."""
    found = search_flag(query)
    options = {**table(LoadOptions), **table(GenerationOptions)}
    keys = [key for key in sorted(found.keys) if key in options] if found is not None else []
    if keys:
        labels = join_list(tr(options[key].setting.label) for key in keys)
        return tr("{0} belongs to a model: it's in the inspector beside the chat.", labels)
    return flag_note(query) or tr("Nothing found for “{0}”.", query)


class SectionList(QListWidget):
    """The names of the sections; the current one is where the user is."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "sections")
        describe(self, "settings.sections", tr("Sections"), tr("Go to a section"))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        for name, _ in _SECTIONS:
            self.addItem(QListWidgetItem(tr(name)))
        app_theme().follow(self, self._on_theme)
        self._on_theme()

    def show_sections(self, are_shown: Sequence[bool]) -> None:
        """Show these sections. The others can't be chosen in the menu either, which shares the rows."""
        for place, is_shown in enumerate(are_shown):
            self.setRowHidden(place, not is_shown)
            flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
            self.item(place).setFlags(flags if is_shown else Qt.ItemFlag.NoItemFlags)

    def wanted_height(self) -> int:
        """Return the height of the rows that are shown, in logical pixels."""
        return sum(self.sizeHintForRow(place) for place in range(self.count()) if not self.isRowHidden(place)) + 2

    def _on_theme(self) -> None:
        for place, (_, name) in enumerate(_SECTIONS):
            self.item(place).setIcon(icon(name, current_theme()["text_dim"], 16))
