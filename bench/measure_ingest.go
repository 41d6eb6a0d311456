package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	hf "github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
)

const (
	ingestConnections = 64
	ingestSites       = 16 // a site may have a few concurrent requests, not all of them
)

// ingestMeasure: notifications come to central one by one, from many callers,
// each durable before its answer.
func ingestMeasure(z sizes) measure {
	m := measure{name: "ingest/64", columns: []column{{key: "rate", unit: "msg/s"}}}
	m.addLoad(z, ingestConnections, 1, load{name: "holdfast", role: roleOurs, open: openIngest})
	m.addLoad(z, ingestConnections, 1, load{name: "bare ingest", role: roleBare, open: openBareIngest})
	return m
}

// linkMeasure: notifications come over as many connections, with the given number in each request.
func linkMeasure(z sizes, each int) measure {
	m := measure{name: fmt.Sprintf("ingest link/64x%d", each), columns: []column{{key: "rate", unit: "msg/s"}}}
	m.addLoad(z, ingestConnections, each, load{name: "holdfast", role: roleOurs, open: func(ctx context.Context, dir string) (loaded, error) { return openLinkIngest(ctx, dir, each) }})
	m.addLoad(z, ingestConnections, each, load{name: "bare ingest", role: roleBare, open: func(_ context.Context, dir string) (loaded, error) { return openBareLinkIngest(dir, each) }})
	return m
}

// openIngest calls the Ingester, without a network.
func openIngest(ctx context.Context, dir string) (loaded, error) {
	o, err := openOffice(ctx, dir, nil)
	if err != nil {
		return loaded{}, err
	}
	return loaded{close: o.Close, do: func(ctx context.Context, n int) error {
		m, err := notice(hf.NewID(), siteName(n%ingestSites))
		if err == nil {
			_, err = o.ingester.Receive(ctx, m)
		}
		return err
	}}, nil
}

// openLinkIngest forwards over the link, with TLS.
func openLinkIngest(ctx context.Context, dir string, each int) (loaded, error) {
	o, err := openOffice(ctx, dir, nil)
	if err != nil {
		return loaded{}, err
	}
	free := make(chan *link.Site, ingestConnections) // each as often as it may ask concurrently
	for n := range ingestSites {
		s, err := o.plant(ctx, dir, siteName(n), o.address, o.db)
		if err != nil {
			return loaded{}, errors.Join(err, o.Close())
		}
		for range ingestConnections / ingestSites {
			free <- s
		}
	}
	return loaded{close: o.Close, do: func(ctx context.Context, n int) error {
		ms := make([]hf.Message, each)
		for i := range ms {
			var err error
			if ms[i], err = notice(hf.NewID(), siteName(0)); err != nil {
				return err
			}
		}
		s := <-free
		defer func() { free <- s }()
		var faults []error
		for _, r := range s.DeliverBatch(ctx, ms) {
			faults = append(faults, r.Err)
		}
		return errors.Join(faults...)
	}}, nil
}

func openBareIngest(_ context.Context, dir string) (loaded, error) {
	l, err := openBareOffice(dir)
	if err != nil {
		return loaded{}, err
	}
	return loaded{close: l.Close, do: func(context.Context, int) error {
		m, err := notice(hf.NewID(), siteName(0))
		if err != nil {
			return err
		}
		return l.enqueue(bareMessage{id: newID(), payload: m.Payload})
	}}, nil
}

func openBareLinkIngest(dir string, each int) (loaded, error) {
	l, err := openBareOffice(dir)
	if err != nil {
		return loaded{}, err
	}
	files, err := makeCert(dir)
	if err != nil {
		return loaded{}, errors.Join(err, l.Close())
	}
	server, address, err := serveTLS(files, bareIntake(l))
	if err != nil {
		return loaded{}, errors.Join(err, l.Close())
	}
	clients := make(chan *http.Client, ingestConnections)
	for range ingestSites {
		c, err := trusting(files.cert, ingestConnections/ingestSites)
		if err != nil {
			return loaded{}, errors.Join(err, server.Close(), l.Close())
		}
		for range ingestConnections / ingestSites {
			clients <- c
		}
	}
	return loaded{
		close: func() error { return errors.Join(server.Close(), l.Close()) },
		do: func(ctx context.Context, _ int) error {
			ms := make([]bareMessage, each)
			for i := range ms {
				m, err := notice(hf.NewID(), siteName(0))
				if err != nil {
					return err
				}
				ms[i] = bareMessage{id: newID(), payload: m.Payload}
			}
			c := <-clients
			defer func() { clients <- c }()
			return send(ctx, c, "https://"+address, ms)
		},
	}, nil
}
