package node_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/certtest"
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
