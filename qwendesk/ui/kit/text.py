"""Translation of what people read. English is the source."""

from PySide6.QtCore import QCoreApplication


def tr(text: str, *values: object) -> str:
    """`text` in the person's language, with {0}, {1}, ... replaced by `values`."""
    translated = QCoreApplication.translate("QwenDesk", text)
    return translated.format(*values) if values else translated
