"""Translation of texts that users read. English is the source; docs/translating.md says how to add a language."""

from typing import Protocol

from qwendesk.core.number_format import show_count

# Separates the forms for one and for many in the source of a text with a count.
FORM_SEPARATOR = "|"
_WORD_JOINER = "\u2060"


class Translator(Protocol):
    def translate(self, source: str, count: int = -1) -> str | None:
        """Return the translation of `source`, in the form for `count` if it has forms; None if there is none."""


class _InstalledTranslator:
    translator: Translator | None = None
    language = "en"


def install_translator(translator: Translator | None, language: str = "en") -> None:
    """Use `translator` for all texts from now on, or English if it is None. `language` is the language's code."""
    _InstalledTranslator.translator, _InstalledTranslator.language = translator, language


def installed_language() -> str:
    """Return the code of the current language, such as "de"."""
    return _InstalledTranslator.language


def tr(text: str, *values: object) -> str:
    """Return `text` in the user's language, with {0}, {1}, ... replaced by `values`.

    Write `text` out in the call, or `mark` it where it is declared: tools/i18n.py collects both.
    """
    translated = _translation(text) or text
    return translated.format(*values) if values else translated


def tr_n(one: str, many: str, count: int, *values: object) -> str:
    """Return the form of a text that fits `count`, which replaces {0} (as 12,345); `values` replace {1}, {2}, ..."""
    translated = _translation(f"{one}{FORM_SEPARATOR}{many}", count) or (one if count == 1 else many)
    return translated.format(show_count(count), *values)


def mark(text: str) -> str:
    """Return `text` unchanged. This only marks it for translators; `tr` translates it where it is shown."""
    return text


def unbroken(text: str) -> str:
    """Return `text` for a label that wraps, with no line break inside "tok/s". Not for text to copy or search."""
    return text.replace("tok/s", f"tok/{_WORD_JOINER}s")


def _translation(source: str, count: int = -1) -> str | None:
    translator = _InstalledTranslator.translator
    return translator.translate(source, count) if translator is not None else None
