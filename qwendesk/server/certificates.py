"""The certificate of a server that other PCs can reach: the user's own, or one that is made here."""

import datetime
import ipaddress
import logging
import socket
import ssl
from pathlib import Path

import msgspec
import psutil

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import file_stamp, write_whole
from qwendesk.core.translation import tr
from qwendesk.remote.addresses import certificate_fingerprint

_logger = logging.getLogger(__name__)

# The longest that macOS accepts of a certificate.
_VALID_DAYS = 825
# A server may run for weeks, and looks at its certificate when it starts.
_RENEWED_BEFORE = datetime.timedelta(days=30)


class Certificate(msgspec.Struct, frozen=True):
    file: Path
    key_file: Path

    def context(self) -> ssl.SSLContext:
        """Return what a server needs to use it. Blocks. Raise QwenDeskError.

        When the files are replaced while the server runs, new connections get what is in them then.
        """
        renewal = _Renewal(self, self._loaded())
        renewal.context.sni_callback = renewal.use_latest
        return renewal.context

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Return what changes when the files are replaced. Blocks. Raises OSError."""
        return tuple(file_stamp(each.stat()) for each in (self.file, self.key_file))

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.file, self.key_file)
        except OSError as error:  # ssl.SSLError is one
            reason = error.strerror or error
            sentence = tr("The certificate {0} can't be used with the key {1}: {2}.", self.file, self.key_file, reason)
            raise QwenDeskError(tr("Certificate not usable"), sentence) from error
        return context

    def fingerprint(self) -> str:
        """Return the SHA-256 of the certificate, as browsers show it. Blocks."""
        return certificate_fingerprint(_first_certificate(self.file.read_text(encoding="ascii", errors="replace")))


class _Renewal:
    """Looks at each connection whether the certificate was renewed, as those that are valid for weeks are."""

    def __init__(self, certificate: Certificate, context: ssl.SSLContext) -> None:
        self._certificate, self._stamp, self.context = certificate, certificate.stamp(), context

    def use_latest(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        """Have the connection use what is in the files; without files that fit together, what was in them before."""
        try:
            stamp = self._certificate.stamp()
            if stamp != self._stamp:
                self._stamp, self.context = stamp, self._certificate._loaded()
        except (OSError, QwenDeskError) as error:
            _logger.warning("The renewed certificate isn't used: %s", error)
        connection.context = self.context


def host_names() -> tuple[str, ...]:
    """Return the names by which other PCs find this one; none if its name can't be in a certificate as it is."""
    name = socket.gethostname().lower()
    return (name, f"{name}.local") if name and name.isascii() else ()


def network_hosts() -> tuple[str, ...]:
    """Return the IPv4 addresses that this PC has in its networks. Blocks."""
    own = (each.address for group in psutil.net_if_addrs().values() for each in group if each.family == socket.AF_INET)
    return tuple(address for address in own if not ipaddress.ip_address(address).is_loopback)


def own_certificate(folder: Path, host: str) -> Certificate:
    """Return the certificate that QwenDesk made in that folder; make one if none is valid. Blocks. Raises OSError.

    It is signed by itself, so clients have to be told to trust it; its fingerprint tells that it is this one.
    """
    found = Certificate(folder / "certificate.pem", folder / "certificate.key")
    if not (found.file.exists() and found.key_file.exists()) or _is_outdated(found.file) or _has_other_key(found):
        _make(found, host)
    return found


def _make(made: Certificate, host: str) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "QwenDesk")])
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in ("localhost", *host_names())]
    addresses = [address for address in ("127.0.0.1", "::1", host, *network_hosts()) if _is_address(address)]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in dict.fromkeys(addresses)]
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_whole(made.key_file, private, mode=0o600)
    write_whole(made.file, certificate.public_bytes(serialization.Encoding.PEM))


def _is_outdated(file: Path) -> bool:
    """Return whether a certificate ends within a month, or isn't valid yet: it was made while the clock was ahead.

    One that can't be read is refused when it is used.
    """
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(file.read_bytes())
    except ValueError:
        return False
    now = datetime.datetime.now(datetime.UTC)
    return found.not_valid_after_utc - now < _RENEWED_BEFORE or now < found.not_valid_before_utc


def _has_other_key(found: Certificate) -> bool:
    """Return whether a crash has left a new key with the old certificate."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(found.file, found.key_file)
    except ssl.SSLError as error:
        return error.reason == "KEY_VALUES_MISMATCH"
    except OSError:
        return False  # it is refused when it is used
    return False


def _first_certificate(pem: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    return pem[pem.index(begin) : pem.index(end) + len(end)] + "\n"


def _is_address(text: str) -> bool:
    try:
        return not ipaddress.ip_address(text).is_unspecified
    except ValueError:
        return False
