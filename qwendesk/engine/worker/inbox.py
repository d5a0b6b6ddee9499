"""Requests on their way from the thread that reads them to the thread that serves them."""

import collections
import threading
from typing import TypeVar

from qwendesk.engine.protocol import AnyRequest, Request

RequestT = TypeVar("RequestT", bound=Request)


class Inbox:
    """First in, first out; the head can be taken early when it is of a kind that can be served meanwhile."""

    def __init__(self) -> None:
        self._requests: collections.deque[AnyRequest] = collections.deque()
        self._changed = threading.Condition()

    def put(self, request: AnyRequest) -> None:
        with self._changed:
            self._requests.append(request)
            self._changed.notify()

    def take(self) -> AnyRequest:
        """The oldest request; waits for one."""
        with self._changed:
            while not self._requests:
                self._changed.wait()
            return self._requests.popleft()

    def take_if(self, kind: type[RequestT]) -> RequestT | None:
        """The oldest request if it is of this kind; never waits."""
        if not self._requests:
            return None
        with self._changed:
            head = self._requests[0] if self._requests else None
            if not isinstance(head, kind):
                return None
            self._requests.popleft()
            return head
