"""How well a few typed letters fit a command's words. Pure."""

_START, _IN_A_ROW, _PLAIN = 8, 5, 1
_SKIPPED = 0.1


def score(query: str, text: str) -> float | None:
    """Higher is better; None when the letters of `query` are not in `text` in their order. "" fits everything."""
    wanted, words = query.lower().replace(" ", ""), text.lower()
    best: float | None = None
    starts = [index for index, letter in enumerate(words) if wanted[:1] in ("", letter)]
    for start in starts or [0]:
        found = _from(wanted, words, start)
        if found is not None and (best is None or found > best):
            best = found
    return best


def _from(wanted: str, words: str, start: int) -> float | None:
    total, place, before = 0.0, start, -2
    for letter in wanted:
        # The start of a word, where there is one later, says more than the next letter that happens to fit.
        at = words.find(letter, place)
        if at != place or at == start:
            word = words.find(f" {letter}", max(0, place - 1))
            at = word + 1 if word >= 0 and before != at - 1 else at
        if at < 0:
            return None
        if at == before + 1:
            total += _IN_A_ROW
        elif at == 0 or words[at - 1] == " ":
            total += _START
        else:
            total += _PLAIN
        before, place = at, at + 1
    return total - _SKIPPED * len(words)
