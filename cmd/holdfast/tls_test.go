package main

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/certtest"
)

// Who speaks plain HTTP to TLS, or TLS to plain HTTP, or does not trust the
// certificate, is told what to write.
func TestTheAddressAndTheCertificate(t *testing.T) {
	t.Parallel()
	node := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"sites":[]}`)
	})
	secure, plain := httptest.NewTLSServer(node), httptest.NewServer(node)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	refused(t, exitUnreachable, []string{"write https:// instead of http://"}, "sites", "ls", "--url", strings.Replace(secure.URL, "https", "http", 1))
	refused(t, exitUnreachable, []string{"write http:// instead of https://"}, "sites", "ls", "--url", strings.Replace(plain.URL, "http", "https", 1))
	refused(t, exitUnreachable, []string{"unknown authority", "--ca or HOLDFAST_CA"}, "sites", "ls", "--url", secure.URL)
	refused(t, exitUnreachable, []string{"write https:// instead of http://"},
		"enroll", strings.Replace(secure.URL, "https", "http", 1), bearer.New("hfe_"), "--file", filepath.Join(t.TempDir(), "credential"))
	if out, stderr, code := command(t, "sites", "ls", "--url", secure.URL, "--ca", ca); code != exitOK || !strings.HasPrefix(out, "NAME") {
		t.Errorf("with its authority: exit code %d, %q, %q", code, out, stderr)
	}
	refused(t, exitUsage, []string{"--ca", "ca.pemx"}, "sites", "ls", "--url", secure.URL, "--ca", ca+"x")
	refused(t, exitUsage, []string{"holds no certificate"}, "sites", "ls", "--url", secure.URL, "--ca", certtest.New(t, 1).Key)
}
