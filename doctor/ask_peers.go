package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/exchange"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// sideBySide bounds how many are asked at once.
const sideBySide = 32

// selfName is the destination of a node without configured destinations.
const selfName = "self"

func askPeers(ctx context.Context, o Options, asking *sync.WaitGroup, f *Findings) {
	if o.Config.SelfOnly() {
		f.Peers = []PeerFound{{Name: selfName, Self: true}}
		return
	}
	names := slices.Sorted(maps.Keys(o.Config.Destinations))
	f.Peers = make([]PeerFound, len(names))
	free := make(chan struct{}, sideBySide)
	for i, name := range names {
		asking.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			f.Peers[i] = askPeer(ctx, o, name, o.Config.Destinations[name])
		})
	}
}

func askPeer(ctx context.Context, o Options, name string, d config.Destination) PeerFound {
	if d.Foreign != nil {
		k := d.Foreign.Kind()
		p := PeerFound{Name: name, Kind: &k}
		p.URL, p.Err = d.Foreign.Probe(ctx, o.Timeout)
		return p
	}
	p := PeerFound{Name: name, URL: d.URL, V1: d.HMAC == config.HMACv1}
	client, err := clientOf(o, d)
	if err != nil {
		p.Err = &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "settings", Err: err}
		return p
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	p.Sent = time.Now()
	p.Probed, p.Err = client.Probe(ctx)
	p.Came = time.Now()
	if p.Probed.TLS != nil {
		p.Until = endOf(p.Probed.TLS.VerifiedChains)
	}
	return p
}

func clientOf(o Options, d config.Destination) (*transport.Client, error) {
	secret, err := wire.NewSecret(d.Secret.Bytes())
	if err != nil {
		return nil, err
	}
	conf := transport.ClientConfig{
		URL: d.URL, Source: o.Config.Source(), Secrets: []*wire.Secret{secret}, V1: d.HMAC == config.HMACv1, To: d.To, DialTimeout: o.Timeout,
	}
	if d.CA != "" {
		if conf.CA, err = namedfile.PEM(d.CA); err != nil {
			return nil, fmt.Errorf("read CA: %w", err)
		}
	}
	return transport.NewClient(conf)
}

// endOf returns when the last of the chains ends. A chain ends with its first certificate.
func endOf(chains [][]*x509.Certificate) time.Time {
	var last time.Time
	for _, chain := range chains {
		var end time.Time
		for _, c := range chain {
			if end.IsZero() || c.NotAfter.Before(end) {
				end = c.NotAfter
			}
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}

// askLocal opens a connection to each program that messages are forwarded to. It sends nothing.
func askLocal(ctx context.Context, o Options, asking *sync.WaitGroup, f *Findings) {
	endpoints := o.Config.Receive.Endpoints
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		if to := endpoints[name].Forward; to != "" {
			f.Local = append(f.Local, LocalFound{Endpoint: name, Address: exchange.Address(to)})
		}
	}
	free := make(chan struct{}, sideBySide)
	for i := range f.Local {
		l := &f.Local[i]
		asking.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			l.Err = exchange.TakesConnections(ctx, nil, l.Address, o.Timeout)
		})
	}
}
