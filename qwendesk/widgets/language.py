"""Installs the window's language: its texts, Qt's own texts, fonts, number format, order of names and direction."""

import functools
import logging
import re
from pathlib import Path

from PySide6.QtCore import QCollator, QLibraryInfo, QLocale, Qt, QTranslator
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication

from qwendesk.core.number_format import ENGLISH_FORMAT, NumberFormat, install_number_format
from qwendesk.core.translation import (
    ENGLISH,
    Language,
    choose_language,
    install_translator,
    languages_folder,
    read_language,
)
from qwendesk.widgets.theme import use_language_fonts

_logger = logging.getLogger(__name__)

# Fields of QLocale's date format, with ours. Years are always written in full.
_DATE_FIELDS = {"d": "{day}", "dd": "{day:02}", "M": "{month}", "MM": "{month:02}", "yy": "{year}", "yyyy": "{year}"}
_DATE_FIELD = re.compile(r"d+|M+|y+")


def show_language(app: QApplication, wanted: str, folder: Path | None = None) -> str:
    """Make the window use the language `wanted` ("" is the system's). Return the code of the language it uses.

    Without a font that has the language's letters, the window is in English. Call this before the theme is chosen and
    the window is built.
    """
    folder = folder or languages_folder()
    available = [ENGLISH, *(file.stem for file in folder.glob("*.json"))]
    code = choose_language(wanted, available, QLocale.system().uiLanguages())
    if wanted and code == ENGLISH != wanted:
        _logger.warning("There is no language file for %r: the window is in English", wanted)
    language = None if code == ENGLISH else read_language(folder / f"{code}.json")
    if language is not None and not _has_font(app, language):
        _logger.warning("No font has the letters of %s: the window is in English. Install one", language.name)
        language = None
    if language is None:
        code = ENGLISH
        use_language_fonts(())
    locale = QLocale(code)
    collator = QCollator(locale)
    collator.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
    order = str.casefold if language is None else functools.cmp_to_key(collator.compare)
    install_translator(language, code, order)
    install_number_format(ENGLISH_FORMAT if language is None else number_format_of(locale))
    QLocale.setDefault(locale)  # for the fields in which users type numbers
    if language is None:
        return ENGLISH
    qt_texts = QTranslator(app)
    if qt_texts.load(locale, "qtbase", "_", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(qt_texts)
    if language.latin_keys:
        app.installTranslator(_LatinKeys(app))
    if language.direction == "rtl":
        app.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    return code


class _LatinKeys(QTranslator):
    """Leaves the names of keys as they are."""

    def translate(self, context: str, source: str, _disambiguation: str | None = None, _n: int = -1) -> str | None:
        return source if context == "QShortcut" else None


def _has_font(app: QApplication, language: Language) -> bool:
    """Return whether the language's name for itself can be drawn: by its own fonts, or by what Qt takes for them."""
    metrics = QFontMetrics(app.font())
    return bool(use_language_fonts(language.fonts)) or all(metrics.inFontUcs4(ord(each)) for each in language.name)


def number_format_of(locale: QLocale) -> NumberFormat:
    """Return the formats of `locale` for numbers and dates. Dates are as 2026-11-22 if it spells out the month."""
    pattern = locale.dateFormat(QLocale.FormatType.ShortFormat)
    is_known = "'" not in pattern and all(field in _DATE_FIELDS for field in _DATE_FIELD.findall(pattern))
    date = _DATE_FIELD.sub(lambda match: _DATE_FIELDS[match[0]], pattern) if is_known else ENGLISH_FORMAT.date
    return NumberFormat(locale.decimalPoint(), locale.groupSeparator(), date)
