"""Translation of texts that users read: English is the source, and each other language is a JSON file.

A missing or damaged file, or a text that does not fit its source, never stops the app: the problem is logged and the
affected texts are shown in English.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.number_format import show_count
from qwendesk.core.paths import resources_folder

# Separates the forms for one and for many in the source of a text with a count.
FORM_SEPARATOR = "|"
_WORD_JOINER = "\u2060"
# After these marks no blank is written: they are as wide as a letter of Chinese, and half of that is empty.
_FULL_WIDTH_ENDS = "。！？；：，、）"
_HAN = "\u3400-\u9fff"
_WIDE = re.compile(f"[{_HAN}{_FULL_WIDTH_ENDS}（“”]")
# The blanks that a Chinese text has around the places for Latin names and numbers.
_GAP = re.compile(rf"(?<=[{_HAN}]) (?=\{{(\d)\}})|(?<=\{{(\d)\}}) (?=[{_HAN}])")


class Translator(Protocol):
    def translate(self, source: str, count: int = -1) -> str | None:
        """Return the translation of `source`, in the form for `count` if it has forms; None if there is none."""


class _InstalledTranslator:
    translator: Translator | None = None
    language = "en"
    sort_key: Callable[[str], Any] = str.casefold


def install_translator(
    translator: Translator | None, language: str = "en", sort_key: Callable[[str], Any] = str.casefold
) -> None:
    """Use `translator` for all texts from now on, or English if it is None.

    `language` is the language's code, and `sort_key` orders names as that language does.
    """
    _InstalledTranslator.translator, _InstalledTranslator.language = translator, language
    _InstalledTranslator.sort_key = staticmethod(sort_key)


def installed_language() -> str:
    """Return the code of the current language, such as "de"."""
    return _InstalledTranslator.language


def tr(text: str, *values: object) -> str:
    """Return `text` in the user's language, with {0}, {1}, ... replaced by `values`.

    Write `text` out in the call, or `mark` it where it is declared: tools/i18n.py collects both.
    """
    translated = _translation(text) or text
    return _filled(translated, values) if values else translated


def tr_n(one: str, many: str, count: int, *values: object) -> str:
    """Return the form of a text that fits `count`, which replaces {0} (as 12,345); `values` replace {1}, {2}, ..."""
    translated = _translation(f"{one}{FORM_SEPARATOR}{many}", count) or (one if count == 1 else many)
    return _filled(translated, (show_count(count), *values))


def _filled(text: str, values: Sequence[object]) -> str:
    """Return `text` with its values. Where a value is Chinese itself, the blank between it and Chinese text goes."""

    def gap(match: re.Match[str]) -> str:
        before, after = match.groups()
        letter = str(values[int(before)])[:1] if before else str(values[int(after)])[-1:]
        return "" if _WIDE.match(letter) else " "

    return _GAP.sub(gap, text).format(*values)


def name_order(name: str) -> Any:
    """Return the key by which a list of the user's own names is sorted: Chinese ones by their sound, for example."""
    return _InstalledTranslator.sort_key(name)


def join_list(items: Iterable[str]) -> str:
    """Return a list as the language writes it, "a, b, c", without empty items."""
    return tr(", ").join(item for item in items if item)


def join_sentences(*sentences: str) -> str:
    """Return sentences as one text, without empty ones. There is no blank after Chinese marks."""
    joined = ""
    for sentence in filter(None, sentences):
        gap = "" if not joined or joined[-1] in _FULL_WIDTH_ENDS else " "
        joined = f"{joined}{gap}{sentence}"
    return joined


def mark(text: str) -> str:
    """Return `text` unchanged. This only marks it for translators; `tr` translates it where it is shown."""
    return text


def unbroken(text: str) -> str:
    """Return `text` for a label that wraps, with no line break inside "tok/s". Not for text to copy or search."""
    return text.replace("tok/s", f"tok/{_WORD_JOINER}s")


def _translation(source: str, count: int = -1) -> str | None:
    translator = _InstalledTranslator.translator
    return translator.translate(source, count) if translator is not None else None


_logger = logging.getLogger(__name__)

ENGLISH = "en"
_PLACEHOLDER = re.compile(r"\{\w+\}")
_CODE = re.compile(r"[a-z]{2,3}(_[A-Z][A-Za-z]{1,3})?")


class PluralRule(msgspec.Struct, frozen=True):
    """Selects the form of a text for a count, as CLDR (unicode.org) defines it for whole numbers."""

    n_forms: int
    form: Callable[[int], int]
    """Returns the index of the form for a count of 0 or more."""


def _slavic(n: int) -> int:
    if n % 10 == 1 and n % 100 != 11:
        return 0
    return 1 if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else 2


def _polish(n: int) -> int:
    return 0 if n == 1 else _slavic(n) or 2


def _arabic(n: int) -> int:
    if n < 3:
        return n
    return 3 if 3 <= n % 100 <= 10 else 4 if n % 100 >= 11 else 5


# Plural rules by the value of "plural" in a language file. The forms are in CLDR's order: one, few, many.
PLURALS: Mapping[str, PluralRule] = MappingProxyType(
    {
        "same": PluralRule(1, lambda _n: 0),
        "one": PluralRule(2, lambda n: int(n != 1)),
        "zero_or_one": PluralRule(2, lambda n: int(n > 1)),
        "slavic": PluralRule(3, _slavic),
        "polish": PluralRule(3, _polish),
        "czech": PluralRule(3, lambda n: 0 if n == 1 else 1 if n in (2, 3, 4) else 2),
        "arabic": PluralRule(6, _arabic),
    }
)


class Language(msgspec.Struct, frozen=True):
    """One language file. Its name is the language's code: de.json, pt_BR.json."""

    name: str
    """The language's own name for itself, such as "Deutsch"."""
    texts: dict[str, str | list[str]]
    """Translation by English source; "" if not translated yet. A text with a count has a list of forms."""
    plural: str = "one"
    """A key of PLURALS."""
    direction: Literal["ltr", "rtl"] = "ltr"
    fonts: tuple[str, ...] = ()
    """Font families for letters that the window's font may lack, the best first. Only installed ones are used."""
    latin_keys: bool = False
    """Whether its keyboards name keys in English: "Ctrl+Enter", not as Qt translates it."""

    def translate(self, source: str, count: int = -1) -> str | None:
        found = self.texts.get(source)
        return found[PLURALS[self.plural].form(count)] if isinstance(found, list) else found


def languages_folder() -> Path:
    return resources_folder() / "i18n"


def language_names(folder: Path | None = None) -> Mapping[str, str]:
    """Return the names of the available languages by code, English first."""
    found = {ENGLISH: "English"}
    for file in sorted((folder or languages_folder()).glob("*.json")):
        language = _decoded(file)
        if language is not None and _CODE.fullmatch(file.stem):
            found[file.stem] = language.name
    return found


def read_language(file: Path) -> Language | None:
    """Return a language file without its unusable texts. Log a warning and return None if the file is unusable."""
    language = _decoded(file)
    if language is None:
        return None
    texts = {}
    for source, text in language.texts.items():
        if problem := translation_problem(source, text, PLURALS[language.plural].n_forms):
            _logger.warning("%s: %s: %r", file, problem, source)
        elif text:
            texts[source] = text
    return msgspec.structs.replace(language, texts=texts)


def _decoded(file: Path) -> Language | None:
    """Return a language file with all its texts, which aren't checked: that takes longer than to decode them."""
    try:
        language = decode_json(file.read_bytes(), Language)
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("The language file %s cannot be used: %s", file, error)
        return None
    if language.plural not in PLURALS:
        _logger.warning("The language file %s names an unknown plural rule: %s", file, language.plural)
        return None
    return language


def translation_problem(source: str, text: str | Sequence[str], n_forms: int) -> str:
    """Return why a translation does not fit its source; "" if it fits or is still empty."""
    is_counted = FORM_SEPARATOR in source
    if not text:
        return ""
    if isinstance(text, str):
        return f"a list of {n_forms} forms is needed" if is_counted else _mismatch(text, placeholders(source))
    if not is_counted:
        return "one text is needed, not a list"
    if len(text) != n_forms:
        return f"a list of {n_forms} forms is needed"
    if not all(text):
        return "a form is empty"
    count, known = {"{0}"}, placeholders(source.rsplit(FORM_SEPARATOR, maxsplit=1)[-1])
    return next((problem for form in text if (problem := _mismatch(form, known | count, count))), "")


def _mismatch(text: str, wanted: set[str], optional: Set[str] = frozenset()) -> str:
    """Return why `text` cannot take these placeholders; "" if it can."""
    if placeholders(text) | optional != wanted:
        return "its placeholders differ from its source's"
    if not wanted:
        return ""  # it is never formatted, so any braces are fine
    try:
        fields = [(name, spec, conversion) for _, name, spec, conversion in Formatter().parse(text) if name is not None]
    except ValueError as error:
        return f"its braces cannot be parsed ({error})"
    is_plain = all(re.fullmatch(r"\w+", name) and not spec and not conversion for name, spec, conversion in fields)
    return "" if is_plain else "its braces hold something other than {0} or {name}"


def placeholders(text: str) -> set[str]:
    """Return the placeholders of a text: {0}, {1}, ... or {name}."""
    return set(_PLACEHOLDER.findall(text))


def choose_language(wanted: str, available: Sequence[str], system: Sequence[str]) -> str:
    """Return the code of the language to show: `wanted` if available, else English.

    "zh" finds "zh_Hans". If `wanted` is "", return the first available one of `system`, the system's language codes by
    preference, such as "de-AT": the system names the script where it matters, so that whoever reads Traditional
    Chinese ("zh-Hant-TW") isn't given Simplified ("zh_Hans").
    """
    for code in [wanted] if wanted else system:
        name = code.replace("-", "_")
        for candidate in (name, name.split("_")[0]):
            if candidate in available:
                return candidate
    variants = [code for code in available if wanted and code.startswith(f"{wanted}_")]
    return variants[0] if variants else ENGLISH
