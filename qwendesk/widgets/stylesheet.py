"""The application's stylesheet, with roles of the theme instead of colours.

The dynamic property `kind` of a widget says what it is (a quiet button, a card); only this module decides what that
looks like. `@role` means a colour, `@mono` the fonts of code, `@N` a text size of N pixels, `@sN` a gap of N pixels at
the chosen density (`@sN-2` 2 less) and `@hN` a minimum height.

Labels and tooltips show their text as it is, unless they have the property `rich`. Qt would take what looks like HTML
for that: the name of a file or the error of a server could hide text in it, or have a picture loaded from a server.
"""

import re

from qwendesk.widgets.theme import Theme, mono_families_css

_RULES = """
QWidget { color: @text; }
QLineEdit, QPlainTextEdit { placeholder-text-color: @text_dim; }
QMainWindow, QWidget[kind="page"], QScrollArea, QWidget[kind="column"] { background: @window; border: none; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
QToolTip {
    background: @tooltip; color: @text; border: 1px solid @border; padding: @s6 8px; font-size: @12;
    qproperty-textFormat: PlainText;
}
QMenu { background: @card; border: 1px solid @border; border-radius: 12px; padding: @s6; }
QMenu[kind="menu"]::right-arrow { image: none; width: 0px; }
QMenu::item { border: 1px solid transparent; padding: @s7 28px @s7 12px; border-radius: 10px; }
QMenu::item:selected { background: @pill_on; border: 1px solid @pill_on_border; }
QMenu::item:disabled { color: @text_off; }
QMenu::separator { height: 1px; background: @border; margin: 6px 4px; }
QMenu::icon { padding-left: 8px; }
QMenu::indicator { width: 16px; height: 16px; padding-left: 8px; }

QFrame[kind="topbar"], QFrame[kind="meterbar"] { background: @panel; border: none; }
QFrame[kind="topbar"] { border-bottom: 1px solid @divider; }
QFrame[kind="meterbar"] { border-top: 1px solid @divider; }
QFrame[kind="rail"] { background: @panel; border: none; border-right: 1px solid @divider; }
QLabel { background: transparent; qproperty-textFormat: PlainText; }
QLabel[rich="true"] { qproperty-textFormat: RichText; }
QLabel[kind="brand"] { font-size: @14; font-weight: 700; }
QLabel[kind="title"] { font-size: @28; font-weight: 700; }
QLabel[kind="result"] { font-size: @20; font-weight: 600; }
QLabel[kind="subtitle"] { color: @text_dim; font-size: @16; }
QLabel[kind="body"] { font-size: @14; }
QLabel[kind="pagetitle"] { font-size: @20; font-weight: 700; }
QLabel[kind="heading"] { font-size: @15; font-weight: 600; }
QLabel[kind="dim"] { color: @text_dim; }
QLabel[kind="lead"] { color: @text_dim; font-size: @14; }
QLabel[kind="filename"] { font-size: @12; font-weight: 600; }
QLabel[kind="small"] { color: @text_dim; font-size: @12; }
QLabel[kind="dim"][tone="warn"] { color: @text_warn; }
QLabel[kind="dim"][tone="bad"] { color: @text_bad; }
QLabel[kind="small"][tone="warn"] { color: @text_warn; font-weight: 600; }
QLabel[kind="small"][tone="bad"] { color: @text_bad; font-weight: 600; }
QLabel[kind="address"] { font-family: @mono; font-size: @12; }
QLabel[kind="number"] { font-size: @12; }
QLabel[kind="notice"] { color: @text_warn; font-size: @12; }
QLabel[kind="error"] { color: @text_bad; }
QLabel[kind="good"] { color: @text_good; }
QLabel[kind="mark"] { color: @text_link; font-size: @11; }
QLabel[kind="badge"] {
    background: @fill; color: @on_fill; border-radius: 9px; padding: 0px 5px; font-size: @11; font-weight: 600;
}
QLabel:focus { color: @text_link; text-decoration: underline; }
QScrollArea:focus, QScrollArea[kind="page"]:focus { border: 1px solid @focus; border-radius: 8px; }
QLabel[kind="strong"] { font-weight: 600; }
QLabel[kind="flag"] { color: @text_dim; font-family: @mono; font-size: @11; }
QFrame[kind="inspector"] { background: @panel; border: none; border-left: 1px solid @divider; }
QWidget[kind="panel"] { background: @panel; border: none; }
QFrame[kind="foot"] { background: @panel; border: none; border-top: 1px solid @divider; }
QComboBox {
    background: @field; border: 1px solid @border; border-radius: 10px; padding: @s5 28px @s5 10px; min-height: 20px;
    combobox-popup: 0;
}
QComboBox:hover { background: @card_hover; }
QComboBox:focus { border: 1px solid @focus; }
QComboBox:disabled { color: @text_off; }
QComboBox::drop-down { border: none; width: 28px; }
QComboBox::down-arrow { image: none; width: 0px; }
QComboBox QAbstractItemView {
    background: @card; border: 1px solid @border; border-radius: 8px; padding: 4px; outline: none;
    selection-background-color: @pill_on; selection-color: @text;
}
QComboBox QAbstractItemView::item { min-height: @h28; padding: 0px 8px; border-radius: 6px; }
QComboBox QAbstractItemView::item:selected { background: @pill_on; }
QMenu[corners="square"], QComboBox QAbstractItemView[corners="square"] { border-radius: 0px; }
QCheckBox { spacing: 9px; padding: @s3 0px; }
QCheckBox::indicator { width: 16px; height: 16px; border: 2px solid @text_dim; border-radius: 5px; }
QCheckBox::indicator:hover { border-color: @text; }
QCheckBox::indicator:focus { border-color: @focus; }
QCheckBox::indicator:checked { border-color: @fill; background: @fill; }
QCheckBox::indicator:checked:focus { border-color: @focus; }
QCheckBox::indicator:disabled { border-color: @text_off; background: @fill_off; }
QCheckBox:focus { color: @text_link; }
QCheckBox:disabled { color: @text_off; }
QSlider { min-height: 22px; }
QSlider::groove:horizontal { background: @meter_free; height: 4px; border-radius: 2px; }
QSlider::sub-page:horizontal { background: @accent; border-radius: 2px; }
QSlider::handle:horizontal {
    background: @text; border: 1px solid @border; width: 14px; height: 14px; margin: -6px 0px; border-radius: 8px;
}
QSlider::handle:horizontal:hover { border: 1px solid @focus; }
QSlider::handle:horizontal:disabled { background: @text_off; }
QSlider::sub-page:horizontal:disabled { background: @scroll_handle; }
QSlider:focus { border: 1px solid @focus; border-radius: 6px; }
QFrame[kind="settingrow"] { background: transparent; border: none; }

QLabel[kind="key"] {
    background: @chip_plain; color: @text_dim; border-radius: 6px; padding: 2px 8px; font-size: @12;
}
QListWidget[kind="sections"] { background: transparent; border: none; outline: none; }
QListWidget[kind="sections"]::item {
    border: 1px solid transparent; border-radius: 10px; padding: @s4 10px; color: @text_dim;
}
QListWidget[kind="sections"]::item:hover { background: @hover; color: @text; }
QListWidget[kind="sections"]::item:selected { background: @pill_on; color: @text; }
QListWidget[kind="sections"]::item:selected:focus { border: 1px solid @focus; }
QListWidget[kind="palette"] { background: transparent; border: none; outline: none; }
QListWidget[kind="palette"]::item { border: 1px solid transparent; border-radius: 8px; }
QListWidget[kind="palette"]::item:hover { background: @card_hover; }
QListWidget[kind="palette"]::item:selected { background: @pill_on; border: 1px solid @pill_on_border; }

QLabel[chip="good"] { color: @text_good; background: @chip_good; }
QLabel[chip="warn"] { color: @text_warn; background: @chip_warn; }
QLabel[chip="bad"] { color: @text_bad; background: @chip_bad; }
QLabel[chip="info"] { color: @text_info; background: @chip_info; }
QLabel[chip="accent"] { color: @text_link; background: @chip_accent; }
QLabel[chip="plain"] { color: @text_dim; background: @chip_plain; }
QLabel[chip] { border-radius: 8px; padding: @s3 8px; font-size: @12; font-weight: 600; }
QLabel[chip][small="true"] { padding: 1px 8px; }
QLabel[kind="fit"][chip="good"], QLabel[kind="fit"][chip="bad"], QLabel[kind="fit"][chip="plain"] {
    background: transparent; padding: 0px; font-weight: 400;
}
QLabel[kind="fit"][chip="bad"] { color: @text_dim; }

QAbstractButton { border-radius: 10px; padding: 0px; }
QPushButton { background: @card; border: 1px solid @border; padding: @s7 12px; outline: none; }
QPushButton:hover { background: @card_hover; }
QPushButton:pressed { background: @pressed; }
QPushButton:focus, QToolButton:focus { border: 1px solid @focus; }
QPushButton:disabled { background: transparent; color: @text_off; }
QPushButton::menu-indicator, QToolButton::menu-indicator { image: none; width: 0px; }

QPushButton[kind="primary"] { background: @fill; color: @on_fill; border: 1px solid @fill; font-weight: 600; }
QPushButton[big="true"] { padding: @s7 24px; font-size: @14; min-height: @h24; }
QPushButton[kind="primary"][big="true"]:focus { padding: @s7-2 22px; }
QPushButton[kind="primary"]:hover { background: @fill_hover; }
QPushButton[kind="primary"]:pressed { background: @fill_pressed; }
QPushButton[kind="primary"]:focus { border: 3px double @focus_on_fill; padding: @s7-2 10px; }
QPushButton[kind="primary"]:disabled { background: @fill_off; color: @on_fill_off; border-color: @border; }

QPushButton[kind="quiet"] { background: transparent; border: 1px solid transparent; color: @text_dim; }
QPushButton[kind="quiet"]:hover { background: @hover; color: @text; }
QPushButton[kind="quiet"]:pressed { background: @pressed; }
QPushButton[kind="quiet"]:focus { border: 1px solid @focus; color: @text; }
QPushButton[kind="link"] {
    background: transparent; border: 1px solid transparent; border-radius: 6px; color: @text_link; padding: @s3 2px;
}
QPushButton[kind="link"]:hover { background: @hover; }
QPushButton[kind="link"]:focus { border: 1px solid @focus; }
QPushButton[kind="link"]:disabled { color: @text_off; }
QPushButton[kind="tag"] {
    background: @chip_warn; color: @text_warn; border: 1px solid transparent; border-radius: 8px;
    padding: @s3 8px; font-size: @12; font-weight: 600;
}
QPushButton[kind="tag"]:hover { border: 1px solid @banner_warn_border; }
QPushButton[kind="tag"]:focus { border: 1px solid @text_warn; }

QPushButton[kind="pill"]:checked, QPushButton[kind="pill"][active="true"] {
    background: @pill_on; border: 1px solid @pill_on_border;
}
QPushButton[kind="pill"]:checked:hover, QPushButton[kind="pill"][active="true"]:hover { background: @pill_on_hover; }
QPushButton[kind="pill"]:focus { border: 1px solid @focus; }
QPushButton[kind="tab"] { background: transparent; border: 1px solid transparent; color: @text_dim; }
QPushButton[leading="true"] { text-align: left; }
QPushButton[compact="true"] { padding: @s5 9px; font-size: @12; }
QPushButton[kind="link"][compact="true"] { padding: @s3 2px; }
QPushButton[kind="tab"]:hover { background: @hover; color: @text; }
QPushButton[kind="tab"]:disabled { background: transparent; color: @text_off; }
QPushButton[kind="tab"]:checked { background: @pill_on; border: 1px solid @pill_on_border; color: @text; }
QPushButton[kind="tab"]:focus { border: 1px solid @focus; }
QPushButton[kind="size"] {
    background: transparent; border: 1px solid transparent; border-radius: 5px; color: @text_link; font-size: @12;
    padding: 1px 3px; margin-left: -4px;
}
QPushButton[kind="size"]:hover { background: @hover; }
QPushButton[kind="size"]:focus { border: 1px solid @focus; }
QPushButton[kind="document"] {
    background: @chip_plain; border: 1px solid @border; border-radius: 9px; text-align: left; padding: @s6 11px @s6 9px;
    font-size: @12;
}
QPushButton[kind="document"]:hover { background: @card_hover; }
QPushButton[kind="document"]:focus { border: 1px solid @focus; }
QPushButton[kind="suggestion"] { text-align: left; padding: @s11 14px; }
QPushButton[kind="thought"] {
    background: transparent; border: 1px solid transparent; color: @text_dim; text-align: left; padding: @s7 12px;
}
QPushButton[kind="thought"]:hover { color: @text; }
QPushButton[kind="thought"]:focus { border: 1px solid @focus; }
QPushButton[chevron="true"] { padding-right: 30px; }
QPushButton[kind="size"][chevron="true"] { padding-right: 20px; }

QRadioButton { spacing: 9px; padding: @s3 0px; }
QRadioButton::indicator { width: 12px; height: 12px; border: 2px solid @text_dim; border-radius: 8px; }
QRadioButton::indicator:checked { border: 4px solid @accent; width: 8px; height: 8px; background: @window; }
QRadioButton::indicator:disabled { border-color: @border; }
QRadioButton:focus { color: @text_link; }
QRadioButton:disabled { color: @text_off; }

QToolButton { background: transparent; border: 1px solid transparent; }
QToolButton:hover { background: @hover; }
QToolButton:pressed { background: @pressed; }
QToolButton[kind="status"] { font-size: @12; padding: @s3 6px; border-radius: 6px; }
QToolButton[kind="status"][quiet="true"] { color: @text_dim; }
QToolButton[kind="status"][quiet="true"]:hover { color: @text; }
QToolButton[kind="status"][tone="warn"] { color: @text_warn; font-weight: 600; }
QToolButton[kind="status"][tone="bad"] { color: @text_bad; font-weight: 600; }
QToolButton[chip] { padding: @s3 8px; border-radius: 8px; font-weight: 600; }
QToolButton[chip="good"] { color: @text_good; background: @chip_good; }
QToolButton[chip="warn"] { color: @text_warn; background: @chip_warn; }
QToolButton[chip="bad"] { color: @text_bad; background: @chip_bad; }
QToolButton[chip="info"] { color: @text_info; background: @chip_info; }
QToolButton[chip="accent"] { color: @text_link; background: @chip_accent; }
QToolButton[chip="plain"] { color: @text_dim; background: @chip_plain; }
QToolButton[chip]:hover { border: 1px solid @text_dim; }
QToolButton[chip]:focus { border: 1px solid @focus; }
QToolButton[kind="rail"] { font-size: @11; color: @text_dim; padding: @s5 0px @s4 0px; }
QToolButton[kind="rail"]:hover { color: @text; }
QToolButton[kind="rail"]:checked {
    color: @text; background: @pill_on; border: 1px solid @pill_on_border;
}
QToolButton[kind="rail"]:checked:focus { border: 1px solid @focus; }
QToolButton[kind="code"] { color: @text_dim; font-size: @12; padding: 2px 6px; border-radius: 6px; }
QToolButton[kind="code"]:hover { color: @text; }
QToolButton[kind="stats"] { color: @text_dim; font-size: @12; padding: @s3 6px @s3 0px; border-radius: 6px; }
QToolButton[kind="stats"]:hover { background: transparent; color: @text; }
QToolButton[kind="round"] { background: @card; border: 1px solid @border; border-radius: 18px; }
QToolButton[kind="round"]:hover { background: @card_hover; }

QFrame[kind="sidebar"] { background: @panel; border: none; border-right: 1px solid @divider; }
QListView[kind="chats"] { background: transparent; border: none; outline: none; padding: 0px; }
QListView[kind="chats"]::item { border: none; }
QLineEdit[kind="search"] {
    background: @window; border: 1px solid @border; border-radius: 8px; padding: 0px 8px;
    selection-background-color: @selection; selection-color: @selection_text;
}
QLineEdit[kind="search"]:focus { border: 1px solid @focus; }
QLineEdit[kind="rename"] {
    background: @window; border: 1px solid @focus; border-radius: 8px; padding: 0px 7px;
    selection-background-color: @selection; selection-color: @selection_text;
}
QToolButton[kind="framed"] { background: @card; border: 1px solid @border; border-radius: 8px; }
QToolButton[kind="framed"]:hover { background: @card_hover; }
QToolButton[kind="framed"]:focus, QToolButton[kind="round"]:focus { border: 1px solid @focus; }
QFrame[kind="menurow"] { background: transparent; border: 1px solid transparent; border-radius: 10px; }
QFrame[kind="menurow"]:hover { background: @card_hover; }
QFrame[kind="menurow"][first="true"] { background: @pill_on; }
QWidget[kind="clear"] { background: transparent; }
QPushButton[kind="menurow"] {
    background: transparent; border: 1px solid transparent; text-align: left; padding: @s7 12px;
}
QPushButton[kind="menurow"]:hover { background: @card_hover; }
QPushButton[kind="menurow"]:focus { border: 1px solid @focus; }
QFrame[kind="toast"] { background: @card; border: 1px solid @border; border-radius: 10px; }

QFrame[kind="composer"] { background: @field; border: 1px solid @border; border-radius: 16px; }
QFrame[kind="composer"][focused="true"] { border: 1px solid @pill_on_border; }
QPlainTextEdit[kind="composer"] {
    background: transparent; border: none; padding: 0px; font-size: @14;
    selection-background-color: @selection; selection-color: @selection_text;
}
QScrollArea[kind="shelf"] { background: transparent; }
QFrame[kind="attachment"] { background: @card; border: 1px solid @border; border-radius: 10px; }
QFrame[kind="question"] { background: @card; border: 1px solid @border; border-radius: 14px; }
QFrame[kind="thought"] { background: transparent; border: 1px solid @border; border-radius: 10px; }
QFrame[kind="failure"] { background: @banner_bad; border: 1px solid @banner_bad_border; border-radius: 10px; }
QFrame[kind="banner"][tone="bad"] {
    background: @banner_bad; border: 1px solid @banner_bad_border; border-radius: 12px;
}
QFrame[kind="banner"][tone="warn"] {
    background: @banner_warn; border: 1px solid @banner_warn_border; border-radius: 12px;
}
QFrame[kind="notice"] { background: @panel; border: 1px solid @border; border-radius: 12px; }
QLabel[kind="notice"] { background: transparent; border: none; }
QFrame[kind="alert"] { background: @field; border-radius: 12px; }
QFrame[kind="alert"][tone="bad"] { border: 1px solid @banner_bad_border; }
QFrame[kind="alert"][tone="warn"] { border: 1px solid @banner_warn_border; }
QPlainTextEdit[kind="details"] { font-family: @mono; }
QPlainTextEdit[kind="details"], QPlainTextEdit[kind="prompt"] {
    background: @code_background; color: @code_text; border: 1px solid @code_border; border-radius: 8px;
    padding: @s8; font-size: @12;
}
QPlainTextEdit[kind="details"]:focus, QPlainTextEdit[kind="prompt"]:focus { border: 1px solid @focus; }
QPlainTextEdit[kind="editor"] {
    background: @code_background; border: 1px solid @code_border; border-radius: 8px; padding: @s8; font-size: @14;
    selection-background-color: @selection; selection-color: @selection_text;
}
QPlainTextEdit[kind="editor"]:focus { border: 1px solid @focus; }
QFrame[kind="drop"] { background: @drop; border: 2px dashed @drop_border; border-radius: 16px; }
QFrame[kind="modelcard"] { background: @field; border: 1px solid @border; border-radius: 12px; }
QFrame[kind="hero"] { background: @field; border: 1px solid @pill_on_border; border-radius: 12px; }
QFrame[kind="tablerow"] { background: transparent; border: none; border-bottom: 1px solid @divider; }
QFrame[kind="tablerow"][last="true"] { border: none; }
QFrame[kind="details"] { background: @window; border: 1px solid @border; border-radius: 10px; }
QFrame[kind="iconbox"] { background: @card; border: none; border-radius: 10px; }
QFrame[kind="rule"] { background: @divider; border: none; max-height: 1px; }
QDialog { background: @window; }
QFrame[kind="popover"] { background: @card; border: 1px solid @border; border-radius: 12px; }
QFrame[kind="popover"][corners="square"] { border-radius: 0px; }
QAbstractSpinBox {
    background: @field; border: 1px solid @border; border-radius: 8px; padding: 0px 8px;
    min-height: @h28;
    selection-background-color: @selection; selection-color: @selection_text;
}
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: 0px; border: none; }
QAbstractSpinBox:disabled { color: @text_off; }
QAbstractSpinBox:focus { border: 1px solid @focus; }

QLineEdit {
    background: @field; border: 1px solid @border; border-radius: 10px; padding: 0px 10px; min-height: @h30;
    selection-background-color: @selection; selection-color: @selection_text;
}
QLineEdit:focus { border: 1px solid @focus; }
QLineEdit:disabled { color: @text_off; }
QProgressBar { background: @meter_free; border: none; border-radius: 3px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }
QProgressBar[role="before"], QProgressBar[role="compared"] { background: transparent; }
QProgressBar[role="before"]::chunk { background: @meter_other; }

QTextBrowser {
    background: transparent; border: none; padding: 0px;
    selection-background-color: @selection; selection-color: @selection_text;
}

QScrollBar:vertical { background: transparent; width: 12px; margin: 0px; }
QScrollBar:horizontal { background: transparent; height: 12px; margin: 0px; }
QScrollBar::handle:vertical { background: @scroll_handle; border-radius: 3px; min-height: 32px; margin: 2px 3px; }
QScrollBar::handle:horizontal { background: @scroll_handle; border-radius: 3px; min-width: 32px; margin: 3px 2px; }
QScrollBar::handle:hover { background: @scroll_handle_hover; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0px; height: 0px; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
"""


def stylesheet(theme: Theme) -> str:
    """Return the stylesheet for a theme. Raise KeyError if the theme lacks a role."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name == "mono":
            return mono_families_css()
        if name[1:].isdigit() and name[0] in "sh":
            measure = theme.space if name[0] == "s" else theme.height
            return f"{measure(int(name[1:])) + int(match[2] or 0)}px"
        return f"{theme.px(int(name))}px" if name.isdigit() else theme[name]

    return re.sub(r"@(\w+)(-\d)?", value, _RULES)
