"""Pictures of any kind and size are decoded within a bounded memory, or refused with the sizes named."""

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qwendesk.decoding import process
from qwendesk.decoding.images import ImageError, decode_image, inspect_image
from qwendesk.decoding.protocol import DecodeRefusal
from tests.decoding.hostile_files import flat_png, png_claiming, sparse_file

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="macOS enforces no limit; peaks are in KiB here"
)


def test_a_sparse_file_of_6_gb_is_refused_with_both_sizes(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"is 6\.0 GB, but picture files can be at most 256 MB"):
        inspect_image(sparse_file(tmp_path / "sparse.png", 6 << 30))


@pytest.mark.parametrize("ask", [inspect_image, lambda path: decode_image(path, longest_side=100)])
def test_too_many_pixels_are_refused_with_what_they_need(tmp_path: Path, ask) -> None:
    path = png_claiming(tmp_path / "deep.png", 12_000, 12_000)

    with pytest.raises(ImageError, match=r"12000x12000 pixels and needs 1\.1 GB of memory, but the limit is 512 MB"):
        ask(path)


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes and devices of POSIX")
def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    for name in ("pipe.png", "zero.png"):
        with pytest.raises(ImageError, match="it is a"):
            inspect_image(tmp_path / name)


@LINUX
def test_memory_is_bounded_for_the_largest_accepted_pictures(tmp_path: Path) -> None:
    """The app holds the reduced pixels only, and the decoding process the full picture once."""
    whole = flat_png(tmp_path / "whole.png", 10_000, 10_000)
    script = """if True:
        import json, resource, sys
        from pathlib import Path
        from qwendesk.decoding.images import ImageError, decode_image
        for path in sys.argv[1:]:
            try:
                decode_image(Path(path), longest_side=440)
            except ImageError:
                pass
        # Not ru_maxrss, which begins with what the process had that started this one.
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        app_kib = int(status["VmHWM"].split()[0])
        print(json.dumps([app_kib, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
    """
    hostile = (sparse_file(tmp_path / "sparse.png", 6 << 30), png_claiming(tmp_path / "deep.png", 12_000, 12_000))
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, hostile), str(whole)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    app_kib, decoder_kib = json.loads(done.stdout)
    assert app_kib < 150 * 1024
    assert decoder_kib < 600 * 1024


@LINUX
def test_picture_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    """Decoded by the real process, whose limit is set lower here than the picture's 400 MB."""
    script = """if True:
        from qwendesk.decoding import main
        main.memory_limit = lambda _request: 250 << 20
        main.main(['{"type": "decode_image"}'])
    """
    with flat_png(tmp_path / "large.png", 10_000, 10_000).open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, stdin=file, capture_output=True, check=True, timeout=300
        )

    assert json.loads(done.stdout)["reason"] == "out_of_memory"


def test_crashed_or_hung_decoder_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 4)).save(path)
    for script, words in [
        ("import os; os.abort()", "exit status"),
        ("import threading; threading.Event().wait()", "time_limit"),
    ]:
        monkeypatch.setattr(process, "_command", lambda script=script: [sys.executable, "-c", script])
        # Only the one that waits may meet the limit, however busy the machine is.
        limit_s = 0.2 if "wait" in script else 300.0
        monkeypatch.setattr(process, "time_limit_s", lambda _request, limit_s=limit_s: limit_s)
        with pytest.raises(ImageError, match=words):
            inspect_image(path)


def test_a_decoder_that_cannot_be_started_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_command", lambda: ["/nowhere/decoder"])

    reply, _ = process.run_decoder(
        b"x", process.msgspec.json.decode(b'{"type":"inspect_image"}', type=process.DecodeRequest)
    )

    assert isinstance(reply, DecodeRefusal)


def test_sixteen_bits_of_grey_keep_their_shades(tmp_path: Path) -> None:
    path = tmp_path / "grey.png"
    Image.fromarray(np.full((8, 8), 0x8000, dtype=np.uint16)).save(path)

    assert set(decode_image(path).pixels) == {0x80}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_made_upright(tmp_path: Path, orientation: int) -> None:
    """As Pillow's own function turns it, which holds the whole picture a second time."""
    from PIL import ImageOps

    drawn = Image.new("RGB", (60, 20), "white")
    drawn.paste("red", (0, 0, 20, 10))
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "turned.png"
    drawn.save(path, exif=exif)

    decoded = decode_image(path)

    with Image.open(path) as image:
        expected = ImageOps.exif_transpose(image)
    assert (decoded.facts.width, decoded.facts.height) == expected.size
    assert decoded.pixels == expected.convert("RGB").tobytes()


@pytest.mark.parametrize("orientation", [1, 6])
def test_the_size_of_a_png_file_is_told_without_its_pixels(tmp_path: Path, orientation: int) -> None:
    """A picture of 100 megapixels took seconds to count, since EXIF data may follow the pixels."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    chunk = b"eXIf" + exif.tobytes().removeprefix(b"Exif\0\0")
    whole = flat_png(tmp_path / "flat.png", 40, 30).read_bytes()
    pixels, end = whole.index(b"IDAT") + 4, whole.index(b"IEND") - 4
    late = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + whole[end:]
    (tmp_path / "late.png").write_bytes(whole[:end] + late)
    (tmp_path / "broken.png").write_bytes(whole[:pixels] + bytes(end - pixels) + late)

    found = inspect_image(tmp_path / "broken.png")
    decoded = decode_image(tmp_path / "late.png").facts

    assert (found.width, found.height) == ((30, 40) if orientation == 6 else (40, 30))
    assert (decoded.width, decoded.height) == (found.width, found.height)


def test_a_large_photo_reaches_the_engine_as_it_would_without_the_shortcut(tmp_path: Path) -> None:
    """JPEG files of more than twice the limit are decoded at half their size."""
    noise = np.random.default_rng(1).integers(0, 255, (30, 40, 3), dtype=np.uint8)
    whole = Image.fromarray(noise).resize((2_000, 1_500), Image.Resampling.BICUBIC)
    whole.save(tmp_path / "photo.jpg", quality=90)

    decoded = decode_image(tmp_path / "photo.jpg", max_pixels=400_000)

    facts = decoded.facts
    kept = Image.frombytes(facts.mode, (facts.pixel_width, facts.pixel_height), decoded.pixels)
    seen, expected = (np.asarray(image.resize((365, 274)), dtype=int) for image in (kept, whole))
    assert np.abs(seen - expected).max() <= 4


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_pixel_format_can_be_reduced(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "any.png"
    Image.new(mode, (300, 200)).save(path)

    facts = decode_image(path, longest_side=30).facts

    assert (facts.width, facts.height, facts.pixel_width, facts.pixel_height) == (300, 200, 30, 20)
    assert facts.mode == ("RGBA" if mode in ("LA", "RGBA") else "RGB")
