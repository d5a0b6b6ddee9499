"""The languages of the window: one JSON file each in resources/i18n, and the translator that Qt asks.

A file that is missing, cannot be read or holds a text that does not fit its source never stops the app: what cannot be
used is logged and shown in English.
"""

import logging
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from string import Formatter
from typing import Literal

import msgspec
from PySide6.QtCore import QLibraryInfo, QLocale, QObject, Qt, QTranslator
from PySide6.QtWidgets import QApplication

from qwendesk.core.files import decode_json
from qwendesk.core.paths import resources_folder
from qwendesk.ui.kit.plurals import PLURALS
from qwendesk.ui.kit.text import BETWEEN_FORMS, CONTEXT

_logger = logging.getLogger(__name__)

ENGLISH = "en"
_PLACEHOLDER = re.compile(r"\{\d+\}")
_CODE = re.compile(r"[a-z]{2,3}(_[A-Z][A-Za-z]{1,3})?")


class Language(msgspec.Struct, frozen=True):
    """One language file. Its name is the language's code: de.json, pt_BR.json."""

    name: str
    """In the language itself: "Deutsch"."""
    texts: dict[str, str | list[str]]
    """Translation by English source. "" is not translated yet. A text with a count has a list of forms."""
    plural: str = "one"
    """The key of its rule in kit/plurals.py."""
    direction: Literal["ltr", "rtl"] = "ltr"


def languages_folder() -> Path:
    return resources_folder() / "i18n"


def languages(folder: Path | None = None) -> Mapping[str, str]:
    """Names of the languages that are there, by code; English, the source, is the first."""
    found = {ENGLISH: "English"}
    for file in sorted((folder or languages_folder()).glob("*.json")):
        language = read_language(file)
        if language is not None and _CODE.fullmatch(file.stem):
            found[file.stem] = language.name
    return found


def read_language(file: Path) -> Language | None:
    """The language of a file without the texts that cannot be used; None, and a line in the log, if none can."""
    try:
        language = decode_json(file.read_bytes(), Language)
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("The language file %s cannot be used: %s", file, error)
        return None
    if language.plural not in PLURALS:
        _logger.warning("The language file %s names no rule of plurals: %s", file, language.plural)
        return None
    texts = {}
    for source, text in language.texts.items():
        if problem := problem_of(source, text, PLURALS[language.plural].n_forms):
            _logger.warning("%s: %s: %r", file, problem, source)
        elif text:
            texts[source] = text
    return msgspec.structs.replace(language, texts=texts)


def problem_of(source: str, text: str | Sequence[str], n_forms: int) -> str:
    """Why a translation cannot stand for its source; "" when it can, or is not there yet."""
    is_counted = BETWEEN_FORMS in source
    if not text:
        return ""
    if isinstance(text, str):
        return f"a list of {n_forms} forms is needed" if is_counted else _misfit(text, placeholders(source))
    if not is_counted:
        return "one text is needed, not a list"
    if len(text) != n_forms:
        return f"a list of {n_forms} forms is needed"
    if not all(text):
        return "a form is empty"
    count, known = {"{0}"}, placeholders(source.rsplit(BETWEEN_FORMS, maxsplit=1)[-1])
    return next((problem for form in text if (problem := _misfit(form, known | count, count))), "")


def _misfit(text: str, wanted: set[str], optional: Set[str] = frozenset()) -> str:
    """Why `text` cannot stand where these placeholders are filled in; "" when it can."""
    if placeholders(text) | optional != wanted:
        return "other placeholders than its source"
    if not wanted:
        return ""  # it is shown as it is, with whatever braces it has
    try:
        fields = [(name, how, kind) for _, name, how, kind in Formatter().parse(text) if name is not None]
    except ValueError as error:
        return f"its braces cannot be read ({error})"
    is_plain = all(name.isdecimal() and not how and not kind for name, how, kind in fields)
    return "" if is_plain else "something else than {0}, {1} stands in braces"


def placeholders(text: str) -> set[str]:
    """The places for values: {0}, {1}, ..."""
    return set(_PLACEHOLDER.findall(text))


def choose(wanted: str, there: Sequence[str], system: Sequence[str]) -> str:
    """The code of the language to show: the one that is wanted, else the first of the system's that is there.

    `wanted` "" leaves it to the system. `system` are the system's codes in its order, such as de-AT.
    English if none is there.
    """
    for code in [wanted] if wanted else system:
        name = code.replace("-", "_")
        for candidate in (name, name.split("_")[0]):
            if candidate in there:
                return candidate
    return ENGLISH


class LanguageTranslator(QTranslator):
    """Answers Qt from a language file."""

    def __init__(self, language: Language, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._texts = language.texts
        self._rule = PLURALS[language.plural]

    def isEmpty(self) -> bool:
        return not self._texts

    def translate(self, context: str, source: str, /, disambiguation: str | None = None, n: int = -1) -> str | None:
        """None where the file has nothing: Qt then asks its other translators, and takes the source at last."""
        found = self._texts.get(source) if context == CONTEXT else None
        return found[self._rule.form(n)] if isinstance(found, list) else found


def show_language(app: QApplication, wanted: str, folder: Path | None = None) -> str:
    """Make the window speak `wanted` ("" as the system). To be called before it is built. Returns the code it took."""
    folder = folder or languages_folder()
    there = [ENGLISH, *(file.stem for file in folder.glob("*.json"))]
    code = choose(wanted, there, QLocale.system().uiLanguages())
    if wanted and code == ENGLISH != wanted:
        _logger.warning("There is no language file for %r: the window is in English", wanted)
    language = None if code == ENGLISH else read_language(folder / f"{code}.json")
    if language is None:
        return ENGLISH
    of_qt = QTranslator(app)
    if of_qt.load(f"qtbase_{code}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        app.installTranslator(of_qt)
    app.installTranslator(LanguageTranslator(language, app))
    if language.direction == "rtl":
        app.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    return code
