package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
)

// tally is what came to the receiver of webhooks.
type tally struct {
	Connections int64 `json:"connections"`
	Taken       int64 `json:"taken"`
	Refused     int64 `json:"refused"` // the signature was wrong
}

// receiver is a process that stands for all subscribers. Each has an address of its own; all of them know
// every subscriber by its path, and check its signature.
type receiver struct {
	verifiers                   [eventFan]standardwebhooks.Verifier
	connections, taken, refused atomic.Int64
}

// webhookChild is the process of a receiver.
func webhookChild(ctx context.Context) error {
	r := &receiver{}
	var out ready
	var listeners []net.Listener
	for n := range r.verifiers {
		var err error
		if r.verifiers[n], err = standardwebhooks.NewVerifier(subscriberSecret(n)); err != nil {
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		listeners, out.Addresses = append(listeners, l), append(out.Addresses, l.Addr().String())
	}
	s := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.connections.Add(1)
		}
	}}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- s.Serve(l) }()
	}
	if err := out.print(); err != nil {
		return err
	}
	for range listeners {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
	}
	return nil
}

// ServeHTTP takes a webhook, or tells what has come.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		_ = json.NewEncoder(w).Encode(tally{r.connections.Load() - 1, r.taken.Load(), r.refused.Load()}) // this one does not count
		return
	}
	n, err := strconv.Atoi(req.URL.Path[1:])
	body, fault := io.ReadAll(req.Body)
	if err == nil {
		err = fault
	}
	if err == nil {
		_, err = standardwebhooks.Verify(req.Header, body, time.Now(), 5*time.Minute, r.verifiers[n%eventFan])
	}
	if err != nil {
		r.refused.Add(1)
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	r.taken.Add(1)
	w.WriteHeader(http.StatusNoContent)
}

// askTally asks a receiver over a connection of its own.
func askTally(ctx context.Context, address string) (t tally, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
	if err != nil {
		return t, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return t, fmt.Errorf("ask the receiver: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&t); err != nil {
		return t, fmt.Errorf("read what the receiver has: %w", err)
	}
	return t, nil
}
