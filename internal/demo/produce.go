package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// producer is the program that has messages to send. One that gets no answer
// is sent again, with the same id, until there is one.
type producer struct {
	book    *ledger
	rate    int // messages per second
	client  *http.Client
	sender  atomic.Pointer[string] // http://host:port
	problem atomic.Pointer[string] // of the last attempt that was not accepted
}

const submitters = 16

// run sends until intake ends, and then finishes what was begun, until work
// ends as well.
func (p *producer) run(intake, work context.Context) {
	orders := make(chan int)
	var all sync.WaitGroup
	for range submitters {
		all.Go(func() {
			for n := range orders {
				p.submit(work, fmt.Sprintf("order-%d", n))
			}
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(p.rate))
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-intake.Done():
			close(orders)
			all.Wait()
			return
		}
		select { // waits while all are busy: a slow machine sends more slowly
		case orders <- n:
		case <-intake.Done():
		}
	}
}

// submit sends one order until the sender has accepted it.
func (p *producer) submit(ctx context.Context, id string) {
	p.book.try(id)
	for ctx.Err() == nil {
		err := p.post(ctx, id)
		if err == nil {
			p.book.accept(id)
			return
		}
		text := err.Error()
		p.problem.Store(&text)
		_ = pause(ctx, 50*time.Millisecond)
	}
}

func (p *producer) post(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body := fmt.Sprintf(`{"id": %q, "destination": "receiver", "endpoint": "Order", "payload": {"order": %q}}`, id, id)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, *p.sender.Load()+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("send %s: %w", id, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("send %s: %w", id, err)
	}
	defer resp.Body.Close() //nolint:errcheck // the status is all that counts
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	switch {
	case err != nil:
		return fmt.Errorf("send %s: %w", id, err)
	case resp.StatusCode == http.StatusAccepted, resp.StatusCode == http.StatusOK: // 200: it was known already
		return nil
	}
	return fmt.Errorf("send %s: the sender answered %d: %s", id, resp.StatusCode, strings.TrimSpace(string(answer[:min(len(answer), 300)])))
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
