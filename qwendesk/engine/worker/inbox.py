"""A queue of requests, between the thread that reads them and the thread that serves them."""

import collections
import threading
from collections.abc import Callable
from typing import TypeVar

from qwendesk.engine.protocol import AnyRequest, Request

RequestT = TypeVar("RequestT", bound=Request)


class Inbox:
    """A first-in, first-out queue. The oldest request can be taken early if it can be served during another one."""

    def __init__(self) -> None:
        self._requests: collections.deque[AnyRequest] = collections.deque()
        self._changed = threading.Condition()

    def put(self, request: AnyRequest) -> None:
        with self._changed:
            self._requests.append(request)
            self._changed.notify()

    @property
    def is_empty(self) -> bool:
        return not self._requests

    def has(self, is_wanted: Callable[[AnyRequest], bool]) -> bool:
        """Return whether a request that `is_wanted` is in the queue."""
        with self._changed:
            return any(map(is_wanted, self._requests))

    def take(self) -> AnyRequest:
        """Remove and return the oldest request; wait for one if the queue is empty."""
        with self._changed:
            while not self._requests:
                self._changed.wait()
            return self._requests.popleft()

    def remove(self, request_id: int) -> AnyRequest | None:
        """Remove and return the request with this id; None if it is not in the queue."""
        with self._changed:
            for place, request in enumerate(self._requests):
                if request.id == request_id:
                    del self._requests[place]
                    return request
            return None

    def take_if(self, kind: type[RequestT]) -> RequestT | None:
        """Remove and return the oldest request if it is of this kind, else None. Never wait."""
        if not self._requests:
            return None
        with self._changed:
            head = self._requests[0] if self._requests else None
            if not isinstance(head, kind):
                return None
            self._requests.popleft()
            return head
