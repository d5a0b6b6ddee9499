"""Translation of what people read. English is the source; docs/translating.md says how a language is added."""

from PySide6.QtCore import QCoreApplication

CONTEXT = "QwenDesk"
"""The context of all texts of ours; Qt's own texts have others."""
_WORD_JOINER = "\u2060"
BETWEEN_FORMS = "|"
"""Stands between one and many in the source of a text with a count."""


def tr(text: str, *values: object) -> str:
    """`text` in the person's language, with {0}, {1}, ... replaced by `values`.

    `text` is written out where it is used, or marked by `mark` where it is declared: tools/i18n.py collects both.
    """
    translated = QCoreApplication.translate(CONTEXT, text)
    return translated.format(*values) if values else translated


def tr_n(one: str, many: str, count: int, *values: object) -> str:
    """`one` or `many` as the language wants it for `count`, which is {0} (as 12,345); `values` are {1}, {2}, ..."""
    source = f"{one}{BETWEEN_FORMS}{many}"
    translated = QCoreApplication.translate(CONTEXT, source, None, count)
    if translated == source:
        translated = one if count == 1 else many
    return translated.format(f"{count:,}", *values)


def unbroken(text: str) -> str:
    """`text` for a label that wraps: a line does not end inside "tok/s". Not for what is copied or searched."""
    return text.replace("tok/s", f"tok/{_WORD_JOINER}s")


def mark(text: str) -> str:
    """`text` itself: it is translated where it is shown, by tr with a variable."""
    return text
