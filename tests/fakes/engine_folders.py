"""Made-up engine folders, and a stand-in for trying them."""

import asyncio
import hashlib
import sys
import zipfile
from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_manifest import Backend, EngineFile, EngineFolder, EngineManifest
from qwendesk.engines.trial import EngineTrial

VERSION = "0.3.36"
LIBRARY = {"win32": "llama.dll", "darwin": "libllama.dylib"}.get(sys.platform, "libllama.so")
"""What llama_cpp looks for in an engine's folder."""
GPU = DeviceInfo("CUDA0", "GPU", "gpu", "CUDA")
CPU = DeviceInfo("CPU", "CPU", "cpu", "CPU")


def make_engine(
    place: Path, name: str, /, backend: Backend = "cpu", needs: tuple[str, ...] = (), **other: object
) -> Path:
    folder = place / name
    folder.mkdir(parents=True)
    content = b"library of " + name.encode()
    (folder / LIBRARY).write_bytes(content)
    file = EngineFile(LIBRARY, len(content), hashlib.sha256(content).hexdigest())
    manifest = EngineManifest(name=name, package_version=VERSION, backend=backend, cpu_needs=needs, files=(file,))
    manifest = msgspec.structs.replace(manifest, **other)
    (folder / "engine.json").write_bytes(msgspec.json.encode(manifest))
    return folder


def make_pack_file(folder: Path, name: str, /, backend: Backend = "cpu", **other: object) -> Path:
    """A zip archive as tools/bundle/pack.py makes it, of a made-up engine."""
    engine = make_engine(folder / "made", name, backend, **other)  # type: ignore[arg-type]
    archive = folder / f"{engine.name}.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(engine / "engine.json", "engine.json")
        packed.write(engine / LIBRARY, f"engine/{LIBRARY}")
        packed.writestr("licences/llama.cpp.txt", "MIT")
    return archive


class Tries:
    """Stands in for trying: which engines run, and which were started."""

    def __init__(self, **runs: EngineTrial | str) -> None:
        self.runs = runs
        self.started: list[str] = []
        self.faults: dict[str, str] = {}
        """Engines that start but can't answer, and why."""
        self.wait_for: dict[str, asyncio.Event] = {}
        """Engines whose trial takes until that happens."""
        self.devices: dict[str, tuple[DeviceInfo, ...]] = {}
        """What engines see that see something else than one card."""

    async def prove(self, engine: EngineFolder) -> str:
        return self.faults.get(engine.name, "")

    async def __call__(self, name: str, backend: Backend, engine: EngineFolder | None) -> EngineTrial:
        self.started.append(name)
        if name in self.wait_for:
            await self.wait_for[name].wait()
        fate = self.runs.get(name.replace("-", "_"), "")
        if fate == "crash":
            return EngineTrial(name=name, backend=backend, engine=engine, reason="It crashed.", crashed=True)
        devices = self.devices.get(name, (CPU,) if backend == "cpu" else (GPU, CPU))
        return EngineTrial(
            name=name, backend=backend, engine=engine, usable=not fate, reason=str(fate), devices=devices
        )
