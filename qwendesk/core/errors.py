"""Our exceptions: a short title for a heading and a sentence that says what to do next."""


class QwenDeskError(Exception):
    """Base of every error we raise on purpose. `sentence` is shown to people as it is."""

    def __init__(self, title: str, sentence: str) -> None:
        super().__init__(f"{title}: {sentence}")
        self.title = title
        self.sentence = sentence


class BadOption(QwenDeskError):
    """A setting that does not exist, or a value it cannot take."""


class BadModelFile(QwenDeskError):
    """A model file that cannot be read; `kind` is the load failure it would become."""

    def __init__(self, title: str, sentence: str, kind: str = "not_gguf") -> None:
        super().__init__(title, sentence)
        self.kind = kind


class BadRequest(QwenDeskError):
    """A request the engine cannot serve as it stands (bad grammar, unreadable picture, ...)."""
