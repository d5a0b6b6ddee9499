"""What the user is told before an engine is added from a file, in the window and on the command line."""

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.pack_file import PackFile

_GROUP = 16


def pack_facts(pack: PackFile) -> tuple[str, ...]:
    """Return paragraphs: what the pack is, its SHA-256 in groups of 16 digits, and whose word for it there is."""
    manifest = pack.manifest
    groups = [pack.sha256[start : start + _GROUP] for start in range(0, len(pack.sha256), _GROUP)]
    trust = (
        tr("This pack is on QwenDesk's list: it is unchanged.")
        if pack.is_listed
        else tr(
            "This pack is not on QwenDesk's list. An engine is native code that runs with your user rights: it can "
            "read, change and delete your files. Add it only if you trust where you got it."
        )
    )
    return (
        tr("Release {0}, {1}, from {2}", manifest.package_version, show_bytes(pack.n_bytes), pack.path),
        tr("SHA-256: {0}", " ".join(groups)),
        trust,
    )
