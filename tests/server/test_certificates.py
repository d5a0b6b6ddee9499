"""The certificate that QwenDesk makes for other PCs."""

import datetime
import socket
import ssl
import stat
import sys
from pathlib import Path

import pytest
from cryptography import x509

from qwendesk.core.errors import QwenDeskError
from qwendesk.server.certificates import Certificate, own_certificate


def alternatives(made: Certificate) -> x509.SubjectAlternativeName:
    loaded = x509.load_pem_x509_certificate(made.file.read_bytes())
    return loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def test_it_names_this_pc_and_its_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Gaming-PC")
    made = own_certificate(tmp_path, "192.0.2.7")
    names = alternatives(made)
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "gaming-pc", "gaming-pc.local"]
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    assert {"127.0.0.1", "192.0.2.7"} <= set(addresses)
    assert len(addresses) == len(set(addresses))
    if sys.platform != "win32":
        assert stat.S_IMODE(made.key_file.stat().st_mode) == 0o600


def test_a_pc_whose_name_is_not_ascii_gets_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Büro")
    made = own_certificate(tmp_path, "0.0.0.0")
    assert alternatives(made).get_values_for_type(x509.DNSName) == ["localhost"]
    assert "0.0.0.0" not in map(str, alternatives(made).get_values_for_type(x509.IPAddress))


def test_it_stays_the_same_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = own_certificate(tmp_path, "0.0.0.0").fingerprint()
    assert own_certificate(tmp_path, "0.0.0.0").fingerprint() == first

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return super().now(tz) + datetime.timedelta(days=825)

    monkeypatch.setattr(datetime, "datetime", Later)
    assert own_certificate(tmp_path, "0.0.0.0").fingerprint() != first


def test_the_fingerprint_is_that_of_the_certificate(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, "0.0.0.0")
    der = ssl.PEM_cert_to_DER_cert(made.file.read_text(encoding="ascii"))
    loaded = x509.load_der_x509_certificate(der)
    digest = loaded.fingerprint(loaded.signature_hash_algorithm or pytest.fail("signed without a hash"))
    assert bytes.fromhex(made.fingerprint().replace(":", "")) == digest


@pytest.mark.parametrize("damage", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff"])
def test_a_damaged_one_is_said_in_a_sentence(tmp_path: Path, damage: bytes) -> None:
    made = own_certificate(tmp_path, "0.0.0.0")
    made.file.write_bytes(damage)
    with pytest.raises(QwenDeskError, match="can't be used"):
        own_certificate(tmp_path, "0.0.0.0").context()


def test_a_certificate_may_have_other_words_around_it(tmp_path: Path) -> None:
    made = own_certificate(tmp_path, "0.0.0.0")
    fingerprint = made.fingerprint()
    made.file.write_bytes("friendlyName: Büro\n".encode() + made.file.read_bytes())
    made.context()
    assert made.fingerprint() == fingerprint
