package explain

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// tlsProblem describes the fault of a server's TLS, with advice; it returns empty text for
// other errors.
func tlsProblem(err error) (what, todo string) {
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		what = "its certificate comes from an authority that this computer does not know"
		if e.Cert != nil && e.Cert.Issuer.CommonName != "" {
			what += ": " + terminal.Clean(e.Cert.Issuer.CommonName)
		}
		return what, "if you trust the authority, give its certificate with --ca-file"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		names := e.Certificate.DNSNames
		if len(names) == 0 {
			return "its certificate is for another host", "check the address"
		}
		return "its certificate is for another host: " + terminal.Clean(strings.Join(names[:min(len(names), 3)], ", ")), "check the address"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		if e.Cert != nil && time.Now().Before(e.Cert.NotBefore) {
			return "its certificate is not valid yet", "check this computer's clock"
		}
		return "its certificate has expired", "tell the publisher, and check this computer's clock"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return "the server does not speak TLS there", "check the port, or try http://"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate cannot be verified: " + e.Err.Error(), "tell the publisher"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" { // an alert, whose type crypto/tls does not export
		return "the server refuses the TLS connection: " + e.Err.Error(), "check the address; the server may require another version of TLS than this program supports"
	}
	return "", ""
}
