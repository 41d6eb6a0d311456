package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// hopMeasure: enqueued at the sender, committed by the receiver, settled at the
// sender; two processes on one machine, both durable, HTTP over loopback.
func hopMeasure(z sizes, batch bool) measure {
	m := measure{name: "hop/single", columns: []column{{key: "rate", unit: "msg/s"}}}
	producers := 64
	if batch {
		m.name, producers = "hop/batch", 256
	}
	for _, o := range holdfast() {
		if o.Hop.Send != nil && o.Hop.Receive != nil {
			m.contenders = append(m.contenders, hopContender(o.Name, roleOurs, z, o.Hop, producers, batch))
		}
	}
	m.contenders = append(m.contenders, hopContender(bareName, roleBare, z, bareHop(), producers, batch))
	return m
}

func hopContender(name string, r role, z sizes, h Hop, producers int, batch bool) contender {
	c := contender{name: name, role: r}
	c.run = func(ctx context.Context, c cell) (v values, err error) {
		from, to := filepath.Join(c.dir, "sender"), filepath.Join(c.dir, "receiver")
		if err := errors.Join(os.Mkdir(from, 0o755), os.Mkdir(to, 0o755)); err != nil {
			return nil, err
		}
		p, err := startChild(ctx, childArgs{task: "receive", contender: name, dir: to, batch: batch, profile: c.profile})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, p.end()) }()
		f := newFlow(z.window)
		q, err := h.Send(context.Background(), Setup{Dir: from, Destinations: 1, Deliver: f.deliver},
			"http://"+p.ready.Address, batch)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, q.Close()) }()
		return f.cycle(context.Background(), q, z, producers)
	}
	return c
}
