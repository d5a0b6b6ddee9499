"""How often a dead engine may be started again by itself."""

from collections import deque


class RestartLimit:
    """At most `most` restarts within `window_s` seconds; a worker that dies at once must not be started for ever."""

    def __init__(self, most: int = 3, window_s: float = 60.0) -> None:
        self.most = most
        self.window_s = window_s
        self._restarts: deque[float] = deque(maxlen=most)

    def allow(self, now: float) -> bool:
        """True, and counted, when one more restart may happen at the time `now` (seconds of any steady clock)."""
        if len(self._restarts) == self.most and now - self._restarts[0] < self.window_s:
            return False
        self._restarts.append(now)
        return True
