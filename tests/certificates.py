"""Certificates of every kind, signed by themselves."""

import datetime
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from qwendesk.server.certificates import Certificate


def make_certificate(
    folder: Path, *, begins_in_days: float = -1, ends_in_days: float = 300, address: str = "127.0.0.1"
) -> Certificate:
    """Write a certificate and its key to certificate.pem and certificate.key, in place of those that are there."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=begins_in_days))
        .not_valid_after(now + datetime.timedelta(days=ends_in_days))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    files = Certificate(folder / "certificate.pem", folder / "certificate.key")
    files.key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    files.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return files


@contextmanager
def tls_server(certificate: Certificate) -> Iterator[int]:
    """Yield the port of a server that shows its certificate and then closes each connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key_file)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                connection, _ = listener.accept()
                with connection:
                    try:
                        context.wrap_socket(connection, server_side=True).close()
                    except OSError:  # the client refused the certificate
                        continue
                    if stops:
                        return

        stops: list[bool] = []
        thread = Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        try:
            yield port
        finally:
            stops.append(True)
            accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            accepting.check_hostname, accepting.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(("127.0.0.1", port)) as last:
                accepting.wrap_socket(last).close()
            thread.join()
