"""The settings page: all options of the app by section, with a search, and the cards of other features."""

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption
from qwendesk.core.flags import flag_note, search_flag
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import join_list, tr
from qwendesk.settings.deletion import PrivacyService
from qwendesk.settings.service import SettingsService
from qwendesk.settings.view.privacy_section import PrivacySection
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import add_clear_button
from qwendesk.widgets.layouts import DensitySpacing
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.rows.choice_row import LanguageRow
from qwendesk.widgets.rows.option_texts import section_slug
from qwendesk.widgets.rows.row_factory import LinkRow, make_row
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_WIDEST = 760
# Width of the scroll bar, which the header leaves free so that it is aligned with the sections.
_SCROLL_BAR = 12
# Logical pixels between the links to sections and these.
_BESIDE_LINKS = 16


class SettingsPage(QWidget):
    """Shows basic and changed options. Advanced shows the others too, and the search finds all of them."""

    def __init__(
        self,
        settings: SettingsService,
        privacy: PrivacyService,
        cards: Mapping[str, Sequence[TitledCard]],
        remarks: Callable[[], dict[str, str]],
        navigation: Navigation,
    ) -> None:
        """`cards` has those of other features, by the section of AppOptions after which they come.

        `remarks` returns, by key, why options that are on have no effect on this PC.
        """
        super().__init__()
        self._settings, self._remarks, self._navigation = settings, remarks, navigation
        self._others, self._privacy = cards, PrivacySection(privacy)
        self.setProperty("kind", "page")
        self._wide: list[QWidget] = []
        self._rows: dict[str, SettingRow] = {}
        self._sections: dict[str, TitledCard] = {}
        self._cards: list[TitledCard] = []
        """All cards, in the order of the page."""
        self._nothing = QLabel()
        self._nothing.setWordWrap(True)
        self._nothing.setProperty("kind", "lead")
        self._nothing.setObjectName("settings.nothing")
        self._note = QLabel()
        self._note.setProperty("kind", "error")
        self._note.setObjectName("settings.note")
        self._note.setWordWrap(True)
        self._note.hide()
        self._area = self._scrolled(self._make_sections())
        self._links = SectionLinks(self, self._cards)
        self._links.asked.connect(self._go_to)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 16, 0, 0)
        column.setSpacing(12)
        DensitySpacing(column)
        column.addWidget(self._centred(self._head(), right=_SCROLL_BAR))
        column.addWidget(self._area, 1)
        self._links.raise_()  # above the empty margin of the sections
        app_theme().follow(self, self._on_theme)
        bind(self, settings.state, self._show_values)
        bind(self, settings.problem, self._show_problem)
        self._filter()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_links()

    def _place_links(self) -> None:
        """Put the links into the margin beside the sections, if there is room for all."""
        self._links.show_shown()
        size = self._links.sizeHint()
        margin = (self.width() - current_theme().px(_WIDEST)) // 2
        self._links.setGeometry(margin - size.width() - _BESIDE_LINKS, self._area.y(), size.width(), size.height())
        self._links.setVisible(self._links.x() > 0 and size.height() <= self._area.height())

    def _go_to(self, card: TitledCard) -> None:
        """Scroll a card to the top."""
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.value() + card.mapTo(self._area.viewport(), QPoint()).y())

    def ask_to_delete(self) -> None:
        """Ask whether all stored data should be deleted."""
        self._privacy.ask()

    def open_at(self, part: str) -> None:
        """Scroll to one part: "token", "folders", "games" or "privacy"."""
        self._search.clear()
        section = next(card for card in self._cards if card.objectName() == f"settings.{part}")
        self._area.ensureWidgetVisible(section, 0, 40)
        field = section.focusProxy()
        if field is not None:
            field.setFocus()

    def _head(self) -> QWidget:
        title = QLabel(tr("Settings"))
        title.setProperty("kind", "pagetitle")
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search settings"))
        add_clear_button(self._search)
        self._search.setMaximumWidth(280)
        describe(
            self._search,
            "settings.search",
            tr("Search settings"),
            tr("By name, help, or flag of llama.cpp, Ollama or vLLM"),
        )
        self._search.textChanged.connect(self._filter)
        self._advanced = TextButton(tr("Advanced"), kind="pill")
        self._advanced.setCheckable(True)
        describe(self._advanced, "settings.advanced", tr("Advanced"), tr("Show the options few people need"))
        self._advanced.toggled.connect(self._filter)
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(title)
        row.addStretch(1)
        row.addWidget(self._search, 2)
        row.addWidget(self._advanced)
        return head

    def _make_sections(self) -> QWidget:
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(24)
        DensitySpacing(column)
        column.addWidget(self._note)
        column.addWidget(self._nothing)
        for entry in table(AppOptions).values():
            name = entry.setting.section
            if name not in self._sections:
                self._sections[name] = TitledCard(f"settings.{section_slug(entry)}", tr(name))
            row = make_row(entry, "settings")
            if isinstance(row, LinkRow):
                row.followed.connect(self._navigation.page_asked)
            if isinstance(row, LanguageRow):
                row.restart_asked.connect(self._navigation.restart_asked)
            row.chosen.connect(self._change_function(entry.key))
            row.reset_requested.connect(lambda key=entry.key: self._settings.reset(key))
            self._sections[name].add(row)
            self._rows[entry.key] = row
        for name, section in self._sections.items():
            self._cards.append(section)
            self._cards += self._others.get(name, ())
        self._cards.append(self._privacy)
        for card in self._cards:
            column.addWidget(card)
        column.addStretch(1)
        return inner

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
        for key, row in self._rows.items():
            row.show_value(getattr(options, key))
        for key, remark in self._remarks().items():
            self._rows[key].refuse(remark)

    def _filter(self) -> None:
        query, shows_advanced = self._search.text().strip(), self._advanced.isChecked()
        for name, section in self._sections.items():
            rows = [row for row in self._rows.values() if row.entry.setting.section == name]
            section.show_rows([(row, self._is_wanted(row, query, shows_advanced=shows_advanced)) for row in rows])
        for card in self._cards:
            if card not in self._sections.values():
                card.setVisible(not query or card.matches(query))
        self._nothing.setText(_nothing_text(query))
        self._nothing.setVisible(all(card.isHidden() for card in self._cards))
        self._place_links()

    def _is_wanted(self, row: SettingRow, query: str, *, shows_advanced: bool) -> bool:
        if query:
            return row.matches(query)
        is_changed = getattr(self._settings.options, row.entry.key) != row.entry.default
        return row.entry.setting.basic or shows_advanced or is_changed

    def _show_problem(self, sentence: str) -> None:
        self._note.setText(sentence)
        self._note.setVisible(bool(sentence))

    def _on_theme(self) -> None:
        """Widen the column with the text size, so that the controls beside the texts leave them enough room."""
        for widget in self._wide:
            widget.setMaximumWidth(current_theme().px(_WIDEST))
        self._place_links()

    def _scrolled(self, widget: QWidget) -> QScrollArea:
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(self._centred(widget))
        return area

    def _centred(self, widget: QWidget, right: int = 0) -> QWidget:
        holder = QWidget()
        holder.setProperty("kind", "column")
        widget.setMaximumWidth(current_theme().px(_WIDEST))
        self._wide.append(widget)
        row = QHBoxLayout(holder)
        row.setContentsMargins(40, 4, 40 + right, 16)
        row.addStretch(1)
        row.addWidget(widget, 1000)
        row.addStretch(1)
        return holder


def _nothing_text(query: str) -> str:
    """Return what to say where no setting matches: where the option of a flag is, or why it has no effect."""
    found = search_flag(query)
    options = {**table(LoadOptions), **table(GenerationOptions)}
    keys = [key for key in sorted(found.keys) if key in options] if found is not None else []
    if keys:
        labels = join_list(tr(options[key].setting.label) for key in keys)
        return tr("{0} belongs to a model: it's in the inspector beside the chat.", labels)
    return flag_note(query) or tr("No matching settings.")


# Logical pixels of a name; a longer one is elided.
_WIDEST_LINK = 172


class SectionLinks(QWidget):
    """Leads to a card."""

    asked = Signal(object)
    """The TitledCard to go to."""

    def __init__(self, parent: QWidget, cards: Sequence[TitledCard]) -> None:
        super().__init__(parent)
        self._links: list[tuple[TitledCard, TextButton]] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for card in cards:
            link = TextButton(kind="tab")
            link.setProperty("compact", "true")
            link.setProperty("leading", "true")
            describe(link, f"{card.objectName()}.link", card.title, tr("Go to {0}", card.title))
            link.clicked.connect(lambda _checked=False, card=card: self.asked.emit(card))
            column.addWidget(link)
            self._links.append((card, link))

    def show_shown(self) -> None:
        """Show the links to the cards that are shown, in the text size of now."""
        widest = current_theme().px(_WIDEST_LINK)
        for card, link in self._links:
            link.setHidden(card.isHidden())
            link.setText(link.fontMetrics().elidedText(card.title, Qt.TextElideMode.ElideRight, widest))
