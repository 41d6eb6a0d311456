package node_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/transport"
)

// Messages go to a node that speaks TLS; a sender that does not trust its
// certificate holds the lane, and charges nobody.
func TestTLS(t *testing.T) {
	t.Parallel()
	conf := parse(t, "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}")
	made := certtest.New(t, time.Hour)
	conf.TLS.Cert, conf.TLS.Key = made.Cert, made.Key
	url := strings.Replace(serve(t, conf), "http://", "https://", 1)
	m := holdfast.Message{ID: "m", Endpoint: "Book", Kind: holdfast.Signal, Payload: []byte(`1`)}
	if _, err := sender(t, transport.ClientConfig{URL: url, CA: made.PEM}).Deliver(t.Context(), m); err != nil {
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
	conf.TLS.Cert = certtest.New(t, time.Hour).Cert
	conf.TLS.Key = filepath.Join(t.TempDir(), "nowhere.pem")
	err := node.Serve(context.Background(), conf, node.Options{})
	if err == nil || !strings.Contains(err.Error(), "nowhere.pem") {
		t.Errorf("got %v, want the file's name", err)
	}
}

// A certificate that was renewed is shown without a restart; one that is half
// written is not.
func TestARenewedCertificateIsShown(t *testing.T) {
	t.Parallel()
	conf := parse(t, "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}")
	shown, renewed := certtest.New(t, time.Hour), certtest.New(t, time.Hour)
	conf.TLS.Cert, conf.TLS.Key = shown.Cert, shown.Key
	url := strings.Replace(serve(t, conf), "http://", "https://", 1)
	put := func(from, to string) {
		t.Helper()
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trusts := func(ca []byte) error {
		_, err := sender(t, transport.ClientConfig{URL: url, CA: ca}).Deliver(t.Context(), holdfast.Message{ID: "m", Endpoint: "Book", Payload: []byte(`1`)})
		return err
	}
	put(renewed.Cert, shown.Cert) // its key has not come yet
	time.Sleep(1100 * time.Millisecond)
	if err := trusts(shown.PEM); err != nil {
		t.Errorf("while the files do not fit: %v", err)
	}
	put(renewed.Key, shown.Key)
	waittest.Until(t, "the renewed certificate is shown", func() bool { return trusts(renewed.PEM) == nil })
}
