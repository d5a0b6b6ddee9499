"""One small QObject per service: subscriptions become signals, intents become coroutines."""
