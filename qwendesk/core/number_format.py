"""The format of numbers and dates. The window installs its language's format at start; the commands use English."""

import datetime

import msgspec


class NumberFormat(msgspec.Struct, frozen=True):
    decimal_point: str = "."
    group_separator: str = ","
    """Between thousands."""
    date: str = "{year:04}-{month:02}-{day:02}"
    """A format string with the fields `year`, `month` and `day`."""


ENGLISH_FORMAT = NumberFormat()


class _InstalledFormat:
    number_format = ENGLISH_FORMAT


def install_number_format(number_format: NumberFormat) -> None:
    """Use this format for all numbers and dates from now on."""
    _InstalledFormat.number_format = number_format


def show_count(count: int) -> str:
    """Return a whole number with its thousands separated: "12,345"."""
    return _in_format(f"{count:,}")


def show_decimal(value: float, decimals: int) -> str:
    """Return a number rounded to this many decimals, with its thousands separated: "1,234.5"."""
    return _in_format(f"{value:,.{decimals}f}")


def show_number(value: float) -> str:
    """Return a number with as many decimals as it has, at most six digits unless it is whole: "12,345", "0.05"."""
    return _in_format(f"{value:,.0f}" if value == int(value) else f"{value:,g}")


def show_date(date: str | datetime.date) -> str:
    """Return a date as the language writes it; a text that is not an ISO date or time is returned unchanged."""
    try:
        day = datetime.date.fromisoformat(date[:10]) if isinstance(date, str) else date
    except ValueError:
        return str(date)
    return _InstalledFormat.number_format.date.format(year=day.year, month=day.month, day=day.day)


def _in_format(english: str) -> str:
    installed = _InstalledFormat.number_format
    return english.translate({ord(","): installed.group_separator, ord("."): installed.decimal_point})
