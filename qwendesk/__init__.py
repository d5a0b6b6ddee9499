"""QwenDesk: run Qwen 3.5, 3.6 and 3.8 at home, in a window."""

__version__ = "0.1.0"
# Address of the project's page of releases, such as https://github.com/owner/qwendesk/releases.
#
# Empty until there is a release. Until then the app has no check for its own updates: no button, no request.
RELEASES = ""
