"""Which model the saved state of a chat belongs to."""

import os
import sys
from pathlib import Path

import msgspec

from qwendesk.core.options import DecidedOptions
from qwendesk.engine.worker import chat_states


def test_the_fingerprint_is_of_the_content_and_of_what_the_cache_depends_on(tmp_path: Path) -> None:
    def fingerprint(content: bytes = b"GGUF" + bytes(9_000_000), version: str = "1", **options: object) -> str:
        model = tmp_path / "model.gguf"
        if not model.exists() or model.read_bytes() != content:
            model.write_bytes(content)
        return chat_states.fingerprint_of(
            msgspec.convert({"model": str(tmp_path / "model.gguf"), **options}, DecidedOptions), version
        )

    same = fingerprint()
    assert fingerprint(n_gpu_layers=3, n_ubatch=64, n_ctx=2048, n_threads=7) == same
    others = {
        fingerprint(version="2"),
        fingerprint(type_k="q8_0"),
        fingerprint(rope_freq_scale=0.5),
        fingerprint(b"GGUF" + bytes(8_999_999)),
        fingerprint(b"GGUF" + bytes(8_999_990) + b"0123456789"[:10]),
        fingerprint(b"GGUf" + bytes(9_000_000)),
    }
    assert same not in others
    assert len(others) == 6


def test_no_change_of_the_model_file_is_missed_wherever_it_is(tmp_path: Path) -> None:
    """Samples alone missed 72 of 93 MB. A program that changes a file may also put its time back."""
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF" + bytes(30_000_000))
    options = msgspec.convert({"model": str(model)}, DecidedOptions)
    before, status = chat_states.fingerprint_of(options, "1"), model.stat()
    with model.open("r+b") as file:
        file.seek(5_123_457)
        file.write(b"x")
    if sys.platform != "win32":
        os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert chat_states.fingerprint_of(options, "1") != before
