package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// producer stands for the programs at one site. If it gets no answer, it sends the thing again with
// the same id until it gets one.
type producer struct {
	book    *ledger
	site    string
	every   time.Duration // between two things that it sends
	client  *exchange.Client
	url     atomic.Pointer[string] // of the site: http://host:port
	problem atomic.Pointer[string] // of the last attempt that was not accepted
}

const submitters = 16

// course is the sequence of things that are sent: half of them are orders.
var course = [...]string{order, call, write, order, notification, order, call, order, write, order}

// run sends until intake ends. Then it finishes what it has begun, until work ends as well.
func (p *producer) run(intake, work context.Context) {
	things := make(chan thing)
	var all sync.WaitGroup
	for range submitters {
		all.Go(func() {
			for t := range things {
				p.submit(work, t)
			}
		})
	}
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-intake.Done():
			close(things)
			all.Wait()
			return
		}
		select { // waits while all workers are busy: a slow machine sends more slowly
		case things <- p.thing(n):
		case <-intake.Done():
		}
	}
}

// thing is what a program hands in to a site.
type thing struct {
	id, path, body string
	to             []string // recipients of a notification
	hopeless       bool     // it can never be done
}

// thing makes the nth thing. Some notifications and writes are hopeless: the address does not
// exist, or the database takes no value below zero.
func (p *producer) thing(n int) thing {
	kind := course[n%len(course)]
	t := thing{id: fmt.Sprintf("%s-%s-%d", kind, p.site, n+1), path: "/v1/messages"}
	odd := n/len(course)%6 == 1
	switch kind {
	case notification:
		list := operators
		t.path, t.to = "/v1/notifications", []string{jane, john}
		if odd {
			list, t.to, t.hopeless = formers, []string{nobody}, true
		}
		t.body = fmt.Sprintf(`{"id": %q, "list": %q, "subject": "Tank %d of %s is full"}`, t.id, list, n+1, p.site)
	case write:
		value := 20 + n%5
		if odd && n%len(course) == 2 {
			value, t.hopeless = -1, true
		}
		t.body = fmt.Sprintf(`{"id": %q, "destination": "readings", "endpoint": "Keep", "attemptImmediately": false, "payload": {"reading": %q, "value": %d}}`, t.id, t.id, value)
	case call:
		t.body = fmt.Sprintf(`{"id": %q, "destination": "parts", "endpoint": "Fetch", "payload": {"call": %q}}`, t.id, t.id)
	default:
		t.body = fmt.Sprintf(`{"id": %q, "destination": "orders", "endpoint": "Order", "payload": {"order": %q}}`, t.id, t.id)
	}
	return t
}

// submit hands a thing in until the site has accepted it.
func (p *producer) submit(ctx context.Context, t thing) {
	p.book.try(t.id, t.to...)
	if t.hopeless {
		p.book.refuse(t.id)
	}
	for ctx.Err() == nil {
		err := p.post(ctx, t)
		if err == nil {
			p.book.accept(t.id)
			return
		}
		text := err.Error()
		p.problem.Store(&text)
		_ = pause(ctx, 50*time.Millisecond)
	}
}

func (p *producer) post(ctx context.Context, t thing) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second) // a site waits 10 s for a target
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *p.url.Load()+t.path, strings.NewReader(t.body))
	if err != nil {
		return fmt.Errorf("send %s: %w", t.id, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, f := p.client.Do(req, nil)
	if f != nil {
		return fmt.Errorf("send %s: %w", t.id, f)
	}
	defer resp.Body.Close() //nolint:errcheck // only the status counts
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return fmt.Errorf("send %s: %w", t.id, err)
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusOK: // 200: it was known already, or is done
		return nil
	case resp.StatusCode == http.StatusUnprocessableEntity && refusedByTarget(answer):
		return nil // it was taken and has ended
	}
	return fmt.Errorf("send %s: %s answered %d: %s", t.id, p.site, resp.StatusCode, strings.TrimSpace(string(answer[:min(len(answer), 300)])))
}

// refusedByTarget reports whether the target refused the call, and not the site.
func refusedByTarget(answer []byte) bool {
	var problem struct {
		Cause string `json:"cause"`
	}
	return json.Unmarshal(answer, &problem) == nil && problem.Cause == "refused_by_target"
}

// pause waits, and returns the error of a context that ends meanwhile.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
