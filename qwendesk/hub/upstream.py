"""What the Hub says of a file, as far as the rules need it."""

import msgspec


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a repository as the Hub has it now; or that it has it no more."""

    is_gone: bool = False
    """The repository was found, the file was not."""
    n_bytes: int = 0
    sha256: str = ""
    """ "" when the Hub does not say."""
    commit: str = ""
    """The commit that was asked about, the newest."""
    date: str = ""
    """ISO 8601: when this file was last changed there."""
    local_date: str = ""
    """ISO 8601: when the version on disk was uploaded; "" when its commit is not known."""
