package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"mime"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/wire"
)

// Credentials says whether the peer accepts the client's secret.
type Credentials int

// The answers of a peer to our signature.
const (
	CredentialsUnknown  Credentials = iota // a probe cannot tell without delivering something
	CredentialsAccepted                    // the peer accepts our signature
	CredentialsRefused                     // the peer refuses our signature
)

// Probed is the answer to a probe.
type Probed struct {
	Status      int // of HTTP
	Credentials Credentials
	Peer        bool                 // the answer comes from a Holdfast node, whatever it says
	Date        time.Time            // of the peer's clock, in whole seconds; zero: not given
	TLS         *tls.ConnectionState // nil: none
}

// Probe asks the peer, by the same way as a delivery, whether it accepts this client's signature.
// It delivers nothing. An error is a *holdfast.Failure whose code says how far the probe got.
//
// A client that signs with V1 only checks whether the peer answers: a v1 signature covers no path,
// so a recorded one could be used for a message.
func (c *Client) Probe(ctx context.Context) (Probed, error) {
	var p Probed
	var fail error
	c.eachSecret(func(seal wire.Seal) (refused bool) {
		p, fail = c.probe(ctx, seal)
		return fail == nil && p.Credentials == CredentialsRefused
	})
	return p, fail
}

func (c *Client) probe(ctx context.Context, seal wire.Seal) (Probed, error) {
	if seal.V1 {
		return c.look(ctx, http.MethodGet, nil)
	}
	seal.Path = wire.ProbePath
	m := holdfast.Message{ID: holdfast.NewID(), Source: c.conf.Source, Endpoint: "probe"}
	envelope, err := wire.Encode(nil, &m, seal)
	if err != nil {
		return Probed{}, holdfast.AsFailure(err)
	}
	return c.look(ctx, http.MethodPost, wire.AppendFrame(nil, envelope))
}

// look makes one request and reads what its answer says about the peer.
func (c *Client) look(ctx context.Context, method string, body []byte) (Probed, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return Probed{}, &holdfast.Failure{Outcome: holdfast.LaneFault, Code: CodeConnect, Err: err}
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", wire.ProbeType)
	}
	req.Header.Set("Accept", wire.ProbeType)
	req.Header.Set("User-Agent", "holdfast")
	sent, fail := c.present(req)
	if fail != nil {
		return Probed{}, fail
	}
	hide := func() *secrets.Set { return hidden(sent) }
	resp, fail := c.http.Do(req, hide)
	if fail != nil {
		return Probed{}, fail
	}
	defer resp.Body.Close() //nolint:errcheck // what matters was read
	p := Probed{Status: resp.StatusCode, TLS: resp.TLS, Peer: resp.Header.Get(HeaderBatch) != ""}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		p.Date = at
	}
	text, err := readAll(resp, wire.Overhead)
	if err != nil {
		return p, exchange.Unanswered(ctx, err, true, hide)
	}
	reply, ours := c.readReply(text)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case p.Status == http.StatusOK && kind == wire.ProbeType && ours && reply.Code == wire.CodeProbe:
		p.Peer, p.Credentials = true, CredentialsAccepted
	case p.Status == http.StatusUnauthorized, ours && reply.Code == CodeSignature:
		p.Credentials = CredentialsRefused
	}
	return p, nil
}
