"""Model files for a picture: sound, outdated, cut off, and with a part missing. Headers over little or nothing."""

from pathlib import Path

from tests.gguf_files import header_of, mmproj_values, model_values, tensor, write_model
from tools.hollow_model import write_hollow


def write_models(folder: Path) -> None:
    """Five sets as downloads would leave them. The large ones are holes: they take no room."""
    sound = folder / "unsloth" / "Qwen3.5-4B-GGUF"
    sound.mkdir(parents=True)
    write_hollow(sound / "Qwen3.5-4B-Q4_K_M.gguf", "4b")
    early = folder / "unsloth" / "Qwen3.5-35B-A3B-GGUF"
    early.mkdir(parents=True)
    write_hollow(early / "Qwen3.5-35B-A3B-Q4_K_M.gguf", "35b")  # smaller than the repaired file, as the early one was
    cut = folder / "unsloth" / "Qwen3.5-9B-GGUF"
    cut.mkdir(parents=True)
    whole = write_hollow(cut / "Qwen3.5-9B-Q4_K_M.gguf", "9b")
    with whole.open("r+b") as file:
        file.truncate(whole.stat().st_size * 2 // 3)
    write_model(cut / "mmproj-F16.gguf", mmproj_values(4096), [tensor("v.patch_embd.weight", 128, 4096)])
    part = folder / "someone" / "Qwen3.5-35B-A3B-GGUF"
    part.mkdir(parents=True)
    values = model_values(split__no=0, split__count=2, split__tensors__count=2)
    first = header_of(values, [tensor("blk.0.attn_q.weight", 64, 64)]) + bytes(64 * 64 * 4)
    (part / "Qwen3.5-35B-A3B-Q8_0-00001-of-00002.gguf").write_bytes(first)
    (folder / "pointer").mkdir()
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 899283648\n"
    (folder / "pointer" / "mmproj-BF16.gguf").write_bytes(pointer)
