"""What every call of llama.cpp's decoding shares: the sequence, and what its status means."""

# The only sequence that QwenDesk uses.
SEQUENCE = 0


class Aborted(Exception):
    """The engine stopped during a decode because the abort flag was set. Its memory needs a rollback."""


class EngineFault(Exception):
    """The engine failed for any reason other than the abort flag."""


def check(status: int) -> None:
    """Raise Aborted or EngineFault if `status`, of llama_decode or mtmd's decode helper, is not 0."""
    if status == 0:
        return
    if status == 2:
        raise Aborted
    raise EngineFault("no room in the KV cache" if status == 1 else f"llama_decode failed with status {status}")
