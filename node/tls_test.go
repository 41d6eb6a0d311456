package node_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/transport"
)

// certificate writes a key and a certificate of its own making for 127.0.0.1.
func certificate(t *testing.T) (cert, key string, ca []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "holdfast test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, text := range map[string][]byte{cert: ca, key: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, ca
}

// Messages go to a node that speaks TLS; a sender that does not trust its
// certificate holds the lane, and charges nobody.
func TestTLS(t *testing.T) {
	t.Parallel()
	conf := parse(t, "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}")
	var ca []byte
	conf.TLS.Cert, conf.TLS.Key, ca = certificate(t)
	url := strings.Replace(serve(t, conf), "http://", "https://", 1)
	m := holdfast.Message{ID: "m", Endpoint: "Book", Kind: holdfast.Signal, Payload: []byte(`1`)}
	if _, err := sender(t, transport.ClientConfig{URL: url, CA: ca}).Deliver(t.Context(), m); err != nil {
		t.Errorf("with the right CA: %v", err)
	}
	_, err := sender(t, transport.ClientConfig{URL: url}).Deliver(t.Context(), m)
	if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.LaneFault {
		t.Errorf("without it: got %v, want a lane fault", err)
	}
}

func TestACertificateThatCannotBeReadStopsTheStart(t *testing.T) {
	t.Parallel()
	conf := parse(t, "")
	conf.TLS.Cert, _, _ = certificate(t)
	conf.TLS.Key = filepath.Join(t.TempDir(), "nowhere.pem")
	err := node.Serve(context.Background(), conf, node.Options{})
	if err == nil || !strings.Contains(err.Error(), "nowhere.pem") {
		t.Errorf("got %v, want the file's name", err)
	}
}
