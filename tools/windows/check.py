"""Run by the Windows Python at the end of the set-up: every library that another asks for is there, and all start."""

import importlib.metadata
import platform
import sys

from packaging.requirements import Requirement


def missing_libraries() -> list[str]:
    """Return what installed libraries ask for on this system, without extras, and do not find."""
    found = []
    for each in importlib.metadata.distributions():
        for text in each.requires or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            try:
                importlib.metadata.version(wanted.name)
            except importlib.metadata.PackageNotFoundError:
                found.append(f"{each.metadata['Name']} asks for {wanted.name}")
    return found


def main() -> int:
    """Print what was found. Returns 0 if everything is there."""
    lacking = missing_libraries()
    for each in lacking:
        print(each)
    import llama_cpp  # noqa: PLC0415 - after the list, so that it is seen if the engine does not load
    from PySide6.QtCore import qVersion  # noqa: PLC0415

    print(f"Python {platform.python_version()} on {sys.platform} {platform.release()}, Qt {qVersion()},")
    print(f"llama-cpp-python {llama_cpp.__version__}: {llama_cpp.llama_print_system_info().decode()}")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
