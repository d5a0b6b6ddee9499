"""What the user is told before an engine is added from a file, in the window and on the command line."""

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.pack_file import PackFile


def pack_facts(pack: PackFile, *, digits_per_group: int = 64) -> tuple[str, ...]:
    """Return paragraphs: what the pack is, its SHA-256, and whether the app's list knows it.

    Spaces between groups of digits let a narrow label wrap; without them the SHA-256 can be searched for.
    """
    manifest = pack.manifest
    starts = range(0, len(pack.sha256), digits_per_group)
    groups = [pack.sha256[start : start + digits_per_group] for start in starts]
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
