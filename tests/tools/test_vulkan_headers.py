"""Old Vulkan headers of the system are replaced by Debian 13's, by hash; the build is told where they are."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.setup import backends, system_packages, vulkan_headers
from tools.setup.project import SetupError
from tools.setup.system_packages import missing, needs, provide

HEADERS = [need for need in needs(["vulkan"], "Linux") if need.kind == "header"]
OLD, NEW = "#define VK_HEADER_VERSION 239\n", "#define VK_EXT_layer_settings 1\n"

pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="only Debian has dpkg-deb")


def write_headers(folder: Path, text: str) -> None:
    for need in HEADERS:
        (folder / need.name).parent.mkdir(parents=True, exist_ok=True)
        (folder / need.name).write_text(text)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a system's headers, which are old; a mirror that has a package with new ones."""
    monkeypatch.delenv("VULKAN_SDK", raising=False)
    include = tmp_path / "include"
    write_headers(include, OLD)
    monkeypatch.setattr(system_packages, "_HEADER_FOLDERS", (str(include),))
    package = tmp_path / "package"
    write_headers(package / "usr" / "include", NEW)
    (package / "DEBIAN").mkdir()
    (package / "DEBIAN" / "control").write_text(
        "Package: libvulkan-dev\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: headers\n"
    )
    archive = tmp_path / "debian" / vulkan_headers._PACKAGE
    archive.parent.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "--build", str(package), str(archive)], check=True, capture_output=True)
    monkeypatch.setenv("DEBIAN_MIRROR", (tmp_path / "debian").as_uri())
    monkeypatch.setattr(vulkan_headers, "_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setattr(vulkan_headers, "FOLDER", tmp_path / "engines" / "vulkan-headers")
    return include


def test_newer_headers_are_fetched_once_and_used(system: Path, said: list[str]) -> None:
    provide(HEADERS, say=said.append)
    assert missing(HEADERS) == []
    assert (vulkan_headers.FOLDER / "include" / "vulkan" / "vulkan_core.h").read_text() == NEW
    assert backends.compiler_environment("vulkan-avx2") == {"VULKAN_SDK": str(vulkan_headers.FOLDER)}
    provide(HEADERS, say=said.append)
    assert len(said) == 1


def test_other_file_than_expected_is_refused(system: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan_headers, "_SHA256", "0" * 64)
    with pytest.raises(SetupError, match="not the expected file"):
        provide(HEADERS, say=said.append)
    assert not vulkan_headers.FOLDER.exists()


def test_fetched_headers_do_not_replace_a_missing_package(system: Path, said: list[str]) -> None:
    provide(HEADERS, say=said.append)
    shutil.rmtree(system)
    assert missing(HEADERS) == HEADERS, "the library that the engine is linked with comes with the package"
