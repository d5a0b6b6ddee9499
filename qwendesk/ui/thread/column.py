"""Where the parts of a long column lie: heights, some measured and some still guessed. Pure Python, no Qt."""

from bisect import bisect_right


class Column:
    """Items one below the other with a gap between them; all in whole pixels."""

    def __init__(self, gap: int = 0) -> None:
        self.gap = gap
        self._heights: list[int] = []
        self._tops: list[int] = []
        """Correct up to `_settled` items; the rest is computed when it is asked for."""
        self._settled = 0

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """The height of all items with the gaps between them."""
        return self.bottom(len(self) - 1) if self._heights else 0

    def append(self, height: int) -> None:
        self._heights.append(height)
        self._tops.append(0)

    def truncate(self, count: int) -> None:
        """Keep the first `count` items."""
        del self._heights[count:]
        del self._tops[count:]
        self._settled = min(self._settled, count)

    def height(self, index: int) -> int:
        return self._heights[index]

    def set_height(self, index: int, height: int) -> int:
        """Returns by how much the item grew."""
        grown = height - self._heights[index]
        if grown:
            self._heights[index] = height
            self._settled = min(self._settled, index + 1)
        return grown

    def top(self, index: int) -> int:
        if index >= self._settled:
            at = self._settled
            place = self._tops[at - 1] + self._heights[at - 1] + self.gap if at else 0
            for each in range(at, index + 1):
                self._tops[each] = place
                place += self._heights[each] + self.gap
            self._settled = index + 1
        return self._tops[index]

    def bottom(self, index: int) -> int:
        return self.top(index) + self._heights[index]

    def at(self, y: int) -> int:
        """The item that `y` lies in or, in a gap, the one above it; -1 for an empty column."""
        if not self._heights:
            return -1
        self.top(len(self) - 1)
        return max(0, bisect_right(self._tops, y) - 1)

    def between(self, top: int, bottom: int) -> range:
        """The items that touch the stretch from `top` to `bottom`."""
        if not self._heights or bottom < 0 or top > self.total:
            return range(0)
        first = self.at(max(0, top))
        if self.bottom(first) < top:
            first += 1
        return range(first, self.at(bottom) + 1)
