package demo

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/holdfast-mq/holdfast/internal/exchange"
)

func (d *demo) child(name string) *child {
	argv := append(append([]string(nil), d.o.Program...), "serve", "--stop-with-stdin", "--config", filepath.Join(d.dir, name+".yaml"))
	return &child{name: name, argv: argv, dir: d.dir, client: exchange.NewClient(exchange.Settings{})}
}

func (d *demo) nodes() []*child {
	list := []*child{d.central}
	for _, p := range d.plants {
		list = append(list, p.child)
	}
	return list
}

// open starts the nodes in the way a person sets them up.
func (d *demo) open(ctx context.Context) error {
	if err := d.startCentral(ctx); err != nil {
		return err
	}
	for _, name := range sites {
		if err := d.enroll(ctx, name, *d.network.target.Load(), d.networkURL); err != nil {
			return err
		}
	}
	for _, p := range d.plants {
		if err := p.startNode(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end stops the nodes, central last.
func (d *demo) end() error {
	var all []error
	for _, p := range d.plants {
		// A connection on which nothing was ever sent would delay a node's stop.
		p.producer.client.Close()
		all = append(all, p.end())
	}
	d.network.to.Close()
	return errors.Join(append(all, d.central.end())...)
}

func (d *demo) startCentral(ctx context.Context) error {
	url, err := d.central.start(ctx)
	if err == nil {
		d.network.send(url)
	}
	return err
}
