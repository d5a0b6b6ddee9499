from qwendesk.core.subscribers import Subscribers


def test_everyone_hears_in_order_until_they_unsubscribe():
    heard = []
    subscribers = Subscribers[int]()
    subscribers.add(lambda news: heard.append(("a", news)))
    leave = subscribers.add(lambda news: heard.append(("b", news)))
    subscribers.notify(1)
    leave()
    leave()
    subscribers.notify(2)
    assert heard == [("a", 1), ("b", 1), ("a", 2)]


def test_one_that_fails_does_not_keep_the_news_from_others(caplog):
    heard = []
    subscribers = Subscribers[int]()
    subscribers.add(lambda news: 1 // 0)
    subscribers.add(heard.append)
    subscribers.notify(7)
    assert heard == [7]
    assert "ZeroDivisionError" in caplog.text
