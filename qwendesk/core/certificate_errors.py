"""What is wrong with a server's certificate, in words."""

import ssl

from qwendesk.core.errors import causes
from qwendesk.core.translation import tr

# Numbers in ssl.SSLCertVerificationError.verify_code: of OpenSSL (X509_V_ERR_... in x509_vfy.h), and of the systems
# that truststore asks: Windows (CERT_E_... in winerror.h), which has one number for both dates, and macOS (errSec... in
# SecBase.h).
_NOT_YET_VALID = (9, -67819)
_EXPIRED = (10, 0x800B0101, -67818)
_OTHER_ADDRESS = (62, 64, 0x800B010F, -67602)


def certificate_problem(host: str, error: BaseException) -> str:
    """Return what is wrong with the certificate of `host` by what caused an error, and what to do about it.

    "" if it is another error, or if only nobody known has signed the certificate.
    """
    failed = (each for each in causes(error) if isinstance(each, ssl.SSLCertVerificationError))
    code = getattr(next(failed, None), "verify_code", 0)
    if code in _EXPIRED:
        return tr("The certificate of {0} has expired. Renew it there, or check this PC's date.", host)
    if code in _NOT_YET_VALID:
        return tr("The certificate of {0} isn't valid yet. Check this PC's date and time.", host)
    if code in _OTHER_ADDRESS:
        return tr("The certificate of {0} belongs to another address. Check the address.", host)
    return ""
