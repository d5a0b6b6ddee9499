"""Where the releases of QwenDesk are."""

# Address of the project's page of releases, such as https://github.com/owner/qwendesk/releases.
#
# Empty until there is a release. Until then the app has no check for its own updates: no button, no request.
RELEASES = ""


def latest_json(releases: str) -> str:
    """Return the address of the file that describes the newest release (tools/release.py writes it)."""
    return f"{releases}/latest/download/latest.json"


def latest_page(releases: str) -> str:
    """Return the address of the newest release's page, for a browser."""
    return f"{releases}/latest"
