from qwendesk.core.observed import Subscribers


def test_subscribers_are_called_in_order_until_they_unsubscribe():
    heard = []
    subscribers = Subscribers[int]()
    subscribers.add(lambda event: heard.append(("a", event)))
    leave = subscribers.add(lambda event: heard.append(("b", event)))
    subscribers.notify(1)
    leave()
    leave()
    subscribers.notify(2)
    assert heard == [("a", 1), ("b", 1), ("a", 2)]


def test_failing_subscriber_does_not_affect_others(caplog):
    heard = []
    subscribers = Subscribers[int]()
    subscribers.add(lambda event: 1 // 0)
    subscribers.add(heard.append)
    subscribers.notify(7)
    assert heard == [7]
    assert "ZeroDivisionError" in caplog.text
