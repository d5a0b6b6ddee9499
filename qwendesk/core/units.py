"""Bytes and times as people read them. Inside the app bytes are ints and times are float seconds."""

KIB = 1024
MIB = 1024**2
GIB = 1024**3


def show_bytes(n_bytes: int) -> str:
    """ "20.5 GB" and the like. GB is 2**30 bytes here, as Windows shows it, for files and memory alike."""
    if n_bytes >= GIB:
        return f"{n_bytes / GIB:.1f} GB"
    if n_bytes >= MIB:
        return f"{n_bytes / MIB:.0f} MB" if n_bytes >= 10 * MIB else f"{n_bytes / MIB:.1f} MB"
    return f"{n_bytes / KIB:.0f} KB" if n_bytes >= KIB else f"{n_bytes} bytes"


def show_tokens(n_tokens: int) -> str:
    """ "12.3K" for 12,345, "64K" for 65,536: context lengths are powers of two, so K is 1024 from 1024 up."""
    if n_tokens < 1024:
        return str(n_tokens)
    thousands = n_tokens / 1024
    return f"{thousands:.0f}K" if thousands >= 100 or thousands == int(thousands) else f"{thousands:.1f}K"


def show_duration(seconds: float) -> str:
    """ "0.2 s", "12 s", "3 min 5 s"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def show_rate(per_s: float) -> str:
    """A measured speed's number: "112", one decimal below 10."""
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.1f}"


def show_expected(rates: tuple[float, float]) -> str:
    """An expected speed's numbers, no finer than they are known: "2,200–16,000", "55–80", "1.2–4", or one of them."""
    low, high = (_two_digits(rate) for rate in rates)
    return low if low == high else f"{low}–{high}"


def _two_digits(rate: float) -> str:
    if rate < 3:
        return f"{rate:.1f}".removesuffix(".0")
    return f"{float(f'{rate:.2g}'):,.0f}"
