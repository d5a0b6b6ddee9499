"""Installs the window's language: the app's texts, Qt's own texts, the number format and the reading direction."""

import logging
import re
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QLocale, Qt, QTranslator
from PySide6.QtWidgets import QApplication

from qwendesk.core.number_format import ENGLISH_FORMAT, NumberFormat, install_number_format
from qwendesk.core.translation import ENGLISH, choose_language, install_translator, languages_folder, read_language

_logger = logging.getLogger(__name__)

# Fields of QLocale's date format, with ours. Years are always written in full.
_DATE_FIELDS = {"d": "{day}", "dd": "{day:02}", "M": "{month}", "MM": "{month:02}", "yy": "{year}", "yyyy": "{year}"}
_DATE_FIELD = re.compile(r"d+|M+|y+")


def show_language(app: QApplication, wanted: str, folder: Path | None = None) -> str:
    """Make the window use the language `wanted` ("" is the system's). Return the code of the language it uses.

    Call this before the window is built.
    """
    folder = folder or languages_folder()
    available = [ENGLISH, *(file.stem for file in folder.glob("*.json"))]
    code = choose_language(wanted, available, QLocale.system().uiLanguages())
    if wanted and code == ENGLISH != wanted:
        _logger.warning("There is no language file for %r: the window is in English", wanted)
    language = None if code == ENGLISH else read_language(folder / f"{code}.json")
    install_translator(language, ENGLISH if language is None else code)
    locale = QLocale(code)
    install_number_format(ENGLISH_FORMAT if language is None else number_format_of(locale))
    QLocale.setDefault(locale)  # for the fields in which users type numbers
    if language is None:
        return ENGLISH
    qt_texts = QTranslator(app)
    if qt_texts.load(f"qtbase_{code}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(qt_texts)
    if language.direction == "rtl":
        app.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    return code


def number_format_of(locale: QLocale) -> NumberFormat:
    """Return the formats of `locale` for numbers and dates. Dates are as 2026-11-22 if it spells out the month."""
    pattern = locale.dateFormat(QLocale.FormatType.ShortFormat)
    is_known = "'" not in pattern and all(field in _DATE_FIELDS for field in _DATE_FIELD.findall(pattern))
    date = _DATE_FIELD.sub(lambda match: _DATE_FIELDS[match[0]], pattern) if is_known else ENGLISH_FORMAT.date
    return NumberFormat(locale.decimalPoint(), locale.groupSeparator(), date)
