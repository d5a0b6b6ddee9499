"""The settings page: every option of the app by section, searched, marked where changed, and the lists beside them."""

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.settings import table
from qwendesk.ui.bridges.places import FoldersBridge, TokenBridge
from qwendesk.ui.bridges.settings import SettingsBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.folders_section import FoldersSection
from qwendesk.ui.settings.privacy_section import PrivacySection
from qwendesk.ui.settings.rows.link_row import LinkRow
from qwendesk.ui.settings.rows.make import make_row
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.words import section_slug
from qwendesk.ui.settings.section import Section
from qwendesk.ui.settings.token_section import TokenSection

_WIDEST = 760
_SCROLL_BAR = 12
"""Its width, which the head leaves free to stand over the sections."""
_AFTER_NETWORK = "Network"
"""The folders and the token stand behind this section."""


class SettingsPage(QWidget):
    """Basic options first; Advanced shows the others, and a search looks through all."""

    page_asked = Signal(str)
    """Another page of the window, by its name in the rail."""

    def __init__(
        self, keeper: ThemeKeeper, settings: SettingsBridge, folders: FoldersBridge, token: TokenBridge
    ) -> None:
        super().__init__()
        self._keeper, self._settings = keeper, settings
        self.setProperty("kind", "page")
        self._wide: list[QWidget] = []
        self._rows: dict[str, SettingRow] = {}
        self._sections: dict[str, Section] = {}
        self._folders = FoldersSection(keeper, folders)
        self._token = TokenSection(keeper, token)
        self._privacy: PrivacySection | None = None
        self._nothing = QLabel(tr("No setting is about that."))
        self._nothing.setProperty("kind", "lead")
        self._nothing.setObjectName("settings.nothing")
        self._note = QLabel()
        self._note.setProperty("kind", "error")
        self._note.setObjectName("settings.note")
        self._note.setWordWrap(True)
        self._note.hide()
        self._area = self._scrolled(self._make_sections())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 16, 0, 0)
        column.setSpacing(12)
        Airy(keeper, column)
        column.addWidget(self._centred(self._head(), right=_SCROLL_BAR))
        column.addWidget(self._area, 1)
        keeper.changed.connect(self._on_theme)
        settings.changed.connect(self._show_values)
        settings.refused.connect(self._on_refused)
        settings.not_saved.connect(self._on_not_saved)
        self._show_values()
        self._filter()

    def add_privacy(self, section: PrivacySection) -> None:
        """At the end of the page."""
        self._privacy = section
        self._column.insertWidget(self._column.count() - 1, section)
        self._filter()

    def remark(self, key: str, sentence: str) -> None:
        """Why the value of an option cannot hold; until values are shown again."""
        self._rows[key].refuse(sentence)

    def open_at(self, part: str) -> None:
        """Show one part: "token", "folders" or "privacy"."""
        self._search.clear()
        section = {"token": self._token, "folders": self._folders, "privacy": self._privacy}[part]
        assert section is not None
        self._area.ensureWidgetVisible(section, 0, 40)
        if part == "token":
            self._token.start_typing()

    def _head(self) -> QWidget:
        title = QLabel(tr("Settings"))
        title.setProperty("kind", "pagetitle")
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search settings"))
        self._search.setClearButtonEnabled(True)
        self._search.setMaximumWidth(280)
        describe(self._search, "settings.search", tr("Search settings"), tr("By name, help or llama.cpp's flag"))
        self._search.textChanged.connect(self._filter)
        self._advanced = TextButton(self._keeper, tr("Advanced"), kind="pill")
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
        column = self._column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(24)
        Airy(self._keeper, column)
        column.addWidget(self._note)
        column.addWidget(self._nothing)
        for entry in table(AppOptions).values():
            name = entry.setting.section
            if name not in self._sections:
                self._sections[name] = Section(f"settings.{section_slug(entry)}", tr(name))
            row = make_row(self._keeper, entry, "settings")
            if isinstance(row, LinkRow):
                row.followed.connect(self.page_asked)
            row.chosen.connect(self._changer(entry.key))
            row.reset_asked.connect(lambda key=entry.key: self._settings.reset(key))
            self._sections[name].add(row)
            self._rows[entry.key] = row
        for name, section in self._sections.items():
            column.addWidget(section)
            if name == _AFTER_NETWORK:
                column.addWidget(self._folders)
                column.addWidget(self._token)
        column.addStretch(1)
        return inner

    def _changer(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            self._settings.change(key, value)
            # Also when nothing changed: an editor must not go on showing what does not hold.
            if getattr(self._settings.options, key) == value:
                self._rows[key].show_value(value)

        return change

    def _show_values(self) -> None:
        for key, row in self._rows.items():
            row.show_value(getattr(self._settings.options, key))

    def _filter(self) -> None:
        query, shows_advanced = self._search.text().strip(), self._advanced.isChecked()
        for name, section in self._sections.items():
            rows = [row for row in self._rows.values() if row.entry.setting.section == name]
            section.show_rows([(row, self._is_wanted(row, query, shows_advanced=shows_advanced)) for row in rows])
        self._folders.setVisible(not query or self._folders.matches(query))
        self._token.setVisible(not query or self._token.matches(query))
        shown: list[QWidget] = [*self._sections.values(), self._folders, self._token]
        if self._privacy is not None:
            self._privacy.setVisible(not query or self._privacy.matches(query))
            shown.append(self._privacy)
        self._nothing.setVisible(all(section.isHidden() for section in shown))

    def _is_wanted(self, row: SettingRow, query: str, *, shows_advanced: bool) -> bool:
        if query:
            return row.matches(query)
        is_changed = getattr(self._settings.options, row.entry.key) != row.entry.default
        return row.entry.setting.basic or shows_advanced or is_changed

    def _on_refused(self, key: str, sentence: str) -> None:
        self._rows[key].refuse(sentence)

    def _on_not_saved(self, sentence: str) -> None:
        self._note.setText(sentence)
        self._note.show()

    def _on_theme(self) -> None:
        """Larger text gets longer lines, so that what stands beside it leaves it room."""
        for widget in self._wide:
            widget.setMaximumWidth(self._keeper.theme.px(_WIDEST))

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
        widget.setMaximumWidth(self._keeper.theme.px(_WIDEST))
        self._wide.append(widget)
        row = QHBoxLayout(holder)
        row.setContentsMargins(40, 4, 40 + right, 16)
        row.addStretch(1)
        row.addWidget(widget, 1000)
        row.addStretch(1)
        return holder
