"""Rewrites an expression as people write it into Python's notation: 7!, 50% of 200, 3,14, 1.234,56 and × ÷ √."""

import re
from collections.abc import MutableSequence

from qwendesk.toolbox.tool import ToolError

_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "√": "sqrt "})
_CALL = re.compile(r"[a-z]\w*\s*\(", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+),\d+")
_POINTS_OF_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3}){2,}")
_POINT_AND_THREE_DIGITS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_FACTORIAL = re.compile(r"!(?!=)")
# A percent sign, not the operator that Python writes so: that has a number behind it.
_PERCENT = re.compile(r"%(?!\s*[\d(])")


def as_python(expression: str, notes: MutableSequence[str]) -> str:
    """Return an expression in Python's notation, and add to `notes` how an ambiguous number was read.

    Raise ToolError for numbers whose commas and points contradict each other, and for "!!".
    """
    plain = expression.strip().rstrip("=").translate(_SIGNS)
    plain = re.sub(r"%\s*of\b", "% *", plain, flags=re.IGNORECASE)
    if not _CALL.search(plain):  # there, a comma separates values
        plain = _with_points(plain, notes)
    plain = re.sub(r"sqrt (\d[\d.]*)", r"sqrt(\1)", plain)
    if re.search(r"!\s*!", plain):
        raise ToolError("A double factorial can't be calculated. Write the product.")
    plain = _rewrite_behind(plain, _FACTORIAL, "factorial({})")
    return _rewrite_behind(plain, _PERCENT, "({} / 100)")


def _with_points(text: str, notes: MutableSequence[str]) -> str:
    """Write all numbers with a decimal point and no separators of thousands.

    "3,14", "0,125" and "1.234,56" can only have decimal commas, "1,234.5" and "1,234,567" only commas of thousands.
    "1,234" is read as the numbers beside it, and as 1234 where they don't tell.
    """
    numbers = _NUMBER.findall(text)
    has_decimal_comma = any(_DECIMAL_COMMA.fullmatch(each) and not _THOUSANDS.fullmatch(each) for each in numbers)
    for number in numbers:
        is_thousands = _THOUSANDS.fullmatch(number) and not _DECIMAL_COMMA.fullmatch(number)
        if has_decimal_comma and (is_thousands or _POINT_AND_THREE_DIGITS.fullmatch(number)):
            raise ToolError(f"{number} can be read in two ways here. Write decimals with a point, thousands without.")
        if not has_decimal_comma and not is_thousands and _THOUSANDS.fullmatch(number):
            notes.append(f"{number} was read as {number.replace(',', '')}")

    def with_point(found: re.Match[str]) -> str:
        number = found[0]
        if _POINTS_OF_THOUSANDS.fullmatch(number):
            return number.replace(".", "")
        if _DECIMAL_COMMA.fullmatch(number) and has_decimal_comma:
            return number.replace(".", "").replace(",", ".")
        return number.replace(",", "") if _THOUSANDS.fullmatch(number) else number

    return _NUMBER.sub(with_point, text)


def _rewrite_behind(text: str, sign: re.Pattern[str], form: str) -> str:
    """Write each operand with `sign` behind it in another form. One without an operand is left."""
    start = 0
    while (found := sign.search(text, start)) is not None:
        first = _operand_start(text[: found.start()].rstrip())
        if first is None:
            start = found.end()
            continue
        text = text[:first] + form.format(text[first : found.start()].strip()) + text[found.end() :]
        start = first
    return text


def _operand_start(text: str) -> int | None:
    """Return where the number or the brackets at the end of `text` begin, with the name of a function before them."""
    if not text.endswith(")"):
        number = re.search(r"(?<![\w.])(?:\d[\d.]*|\.\d+)(?:e[+-]?\d+)?$", text, re.IGNORECASE)
        return number.start() if number else None
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if not depth:
            name = re.search(r"[a-z]\w*\s*$", text[:at], re.IGNORECASE)
            return name.start() if name else at
    return None
