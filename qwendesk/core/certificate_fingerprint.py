"""How a certificate of TLS is told from others by people."""

import hashlib
import ssl


def certificate_fingerprint(pem: str) -> str:
    """Return the SHA-256 of a certificate as pairs of hex digits, as servers and browsers show it.

    Raise ValueError if `pem` has anything but one certificate.
    """
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
    return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))
