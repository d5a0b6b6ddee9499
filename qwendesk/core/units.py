"""Texts for sizes, durations and speeds. The code itself uses int bytes and float seconds."""

from qwendesk.core.number_format import show_count, show_decimal
from qwendesk.core.translation import tr, tr_n

KIB = 1024
MIB = 1024**2
GIB = 1024**3


def show_bytes(n_bytes: int) -> str:
    """Return a size such as "20.5 GB". GB is 2**30 bytes, as in Windows, for files and memory alike."""
    if n_bytes >= GIB:
        return f"{show_decimal(n_bytes / GIB, 1)} GB"
    if n_bytes >= MIB:
        return f"{show_decimal(n_bytes / MIB, 0 if n_bytes >= 10 * MIB else 1)} MB"
    return f"{n_bytes / KIB:.0f} KB" if n_bytes >= KIB else tr_n("{0} byte", "{0} bytes", n_bytes)


def show_tokens(n_tokens: int) -> str:
    """Return "64K" for 65,536, "12.1K" for 12,345 and "1M" for 1,010,000.

    K is 1024 and M its square, because context lengths are powers of two. A million is "1M" too, as model cards say.
    """
    if n_tokens < 1024:
        return str(n_tokens)
    if n_tokens >= 1_000_000:
        millions = max(round(n_tokens / 1024**2, 1), 1.0)
        return f"{show_decimal(millions, 0 if millions == int(millions) else 1)}M"
    thousands = n_tokens / 1024
    return f"{show_decimal(thousands, 0 if thousands >= 100 or thousands == int(thousands) else 1)}K"


def show_duration(seconds: float) -> str:
    """Return "0.2 s", "12 s" or "3 min 5 s"."""
    if seconds < 60:
        return tr("{0} s", show_decimal(seconds, 1 if seconds < 10 else 0))
    minutes, rest = divmod(round(seconds), 60)
    return tr("{0} min {1} s", minutes, rest)


def show_elapsed(seconds: float) -> str:
    """Return a measured duration: "<0.1 s" instead of "0.0 s", else as `show_duration`."""
    return tr("<0.1 s") if seconds < 0.05 else show_duration(seconds)


def show_rate(per_s: float) -> str:
    """Return a measured speed without its unit, such as "112"; one decimal below 10."""
    return show_decimal(per_s, 0 if per_s >= 10 else 1)


def show_expected(rates: tuple[float, float]) -> str:
    """Return an expected speed, (low, high), in about two digits: "2,200–16,000", "55–80", "1.2–4", or one number."""
    low, high = (_two_digits(rate) for rate in rates)
    return low if low == high else f"{low}–{high}"


def show_reported(rates: tuple[float, float]) -> str:
    """Return a speed that somebody measured, (slowest, fastest), as it was reported: "118", "31–41" or "5.6–18"."""
    low, high = (show_rate(rate) for rate in rates)
    return low if low == high else f"{low}–{high}"


def _two_digits(rate: float) -> str:
    if rate < 3:
        return show_decimal(rate, 0 if f"{rate:.1f}".endswith(".0") else 1)
    return show_count(round(float(f"{rate:.2g}")))
