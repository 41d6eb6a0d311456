package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	hf "github.com/holdfast-mq/holdfast"
)

const (
	silentEvery   = 10 * time.Millisecond // interval of the good server's mails
	silentWaiting = 100                   // notifications for the silent one before the clock runs
)

// silentMeasure: the time from the durable answer at central until a server that answers has the
// mail, with a second server that accepts connections and says nothing, and without it.
func silentMeasure(z sizes) measure {
	m := measure{name: "mail silent", columns: []column{
		{key: "beside99", title: "good p99 beside 1 silent", unit: "ms", lower: true},
		{key: "alone99", title: "good p99 alone", unit: "ms", lower: true},
		{key: "beside50", title: "good p50 beside 1 silent", unit: "ms", lower: true},
		{key: "alone50", title: "good p50 alone", unit: "ms", lower: true},
	}}
	m.contenders = []contender{{name: "holdfast", role: roleOurs, run: func(_ context.Context, c cell) (values, error) {
		return bothTimes(c, func(dir string, beside bool) ([]float64, error) {
			return goodTimes(context.Background(), dir, z, beside)
		})
	}}}
	return m
}

// goodTimes returns the milliseconds from the durable answer until the good server has the mail.
func goodTimes(ctx context.Context, dir string, z sizes, silent bool) (times []float64, err error) {
	w := &mailWatch{arrived: map[hf.ID]time.Time{}}
	good, err := openMailServer(w.got)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, good.Close()) }()
	l, port, err := openSilent()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	goodChannel, err := mailChannel("good", good.port, mailConnections)
	if err != nil {
		return nil, err
	}
	silentChannel, err := mailChannel("silent", port, mailConnections)
	if err != nil {
		return nil, err
	}
	p, err := openPost(ctx, dir, goodChannel, silentChannel)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if silent {
		if err := p.ingest(ctx, "silent", silentWaiting); err != nil {
			return nil, err
		}
	}
	p.run(ctx)
	return w.times(ctx, p, z)
}

// mailWatch records when each mail arrived.
type mailWatch struct {
	mu      sync.Mutex
	arrived map[hf.ID]time.Time
}

// got reads the id from the header of a mail.
func (w *mailWatch) got(mail []byte) {
	at := time.Now()
	_, rest, _ := bytes.Cut(mail, []byte("X-Notification-Id: "))
	id, _, _ := bytes.Cut(rest, []byte("\r\n"))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived[hf.ID(id)] = at
}

// times enqueues at a fixed rate, and waits for late mails. A mail that never arrives counts until
// the end. The first tenth is the warm-up.
func (w *mailWatch) times(ctx context.Context, p *mailing, z sizes) ([]float64, error) {
	count := int(z.paced / silentEvery)
	ids, answered := make([]hf.ID, count), make([]time.Time, count)
	began := time.Now()
	for n := range count {
		time.Sleep(time.Until(began.Add(time.Duration(n) * silentEvery)))
		ids[n] = hf.NewID()
		m, err := noticeTo("good", ids[n], siteName(0))
		if err != nil {
			return nil, err
		}
		if _, err := p.ingester.Receive(ctx, m); err != nil {
			return nil, fmt.Errorf("ingest: %w", err)
		}
		answered[n] = time.Now()
	}
	for end := time.Now().Add(z.late); time.Now().Before(end) && w.count() < count; {
		time.Sleep(time.Millisecond)
	}
	end := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	var times []float64
	missing := 0
	for n := count / 10; n < count; n++ {
		at, ok := w.arrived[ids[n]]
		if !ok {
			at = end
			missing++
		}
		times = append(times, max(0, float64(at.Sub(answered[n]))/1e6))
	}
	if missing == len(times) {
		return nil, errors.New("no mail is known by the id of its notification")
	}
	return times, nil
}

func (w *mailWatch) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.arrived)
}
