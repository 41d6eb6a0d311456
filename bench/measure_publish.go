package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/fanout"
)

const (
	publishers = 64

	// seq, id, hash, now; the data is with the event's first message
	bareEventBundle = `INSERT INTO hf_bundle (seq, kind, source, id, hash, created, first, payload) VALUES (?1, 'event', 'bench', ?2, ?3, ?4, ?1, x'')`
	// seq, id, now
	bareEvent = `INSERT INTO hf_event (seq, id, source, topic, type, subject, at, attributes, media, actor, matched, version, received)
VALUES (?1, ?2, 'bench', '` + eventTopic + `', '` + eventType + `', 'A-17', ?3, '{"country":"nl","priority":"5"}', '', '', 10, 11, ?3)`
	// seq, event, id
	bareDelivery = `INSERT INTO hf_delivery (seq, event, subscription, version, message) VALUES (?1, ?2, 'subscription-1', 2, ?3)`
)

// publishMeasure: programs publish events of 1 KB, each for 10 subscriptions, and wait until they are durable.
func publishMeasure(z sizes) measure {
	m := measure{name: fmt.Sprintf("publish/%dx%d", publishers, eventFan), columns: []column{{key: "rate", unit: "events/s"}}}
	m.addLoad(z, publishers, 1, load{name: "holdfast", role: roleOurs, open: openPublish})
	m.addLoad(z, publishers, 1, load{name: "HTTP", role: roleOurs, settings: "the node's API on the loopback, in this process with its clients", open: openPublishHTTP})
	m.addLoad(z, publishers, 1, load{name: "notificaties", role: roleOurs, settings: "the same by the Notificaties API, with a token", open: openNotificaties})
	m.addLoad(z, publishers, 1, load{name: "bare publish", role: roleBare, settings: "group commit of the rows of an event and its messages; no filters, no headers", open: openBarePublish})
	return m
}

func openPublish(ctx context.Context, dir string) (loaded, error) {
	h, err := openHub(ctx, dir)
	if err != nil {
		return loaded{}, err
	}
	if err := h.subscribe(ctx, "127.0.0.1:9"); err != nil {
		return loaded{}, errors.Join(err, h.Close())
	}
	return loaded{close: h.Close, do: func(ctx context.Context, _ int) error { return h.publish(ctx) }}, nil
}

func openPublishHTTP(ctx context.Context, dir string) (l loaded, err error) {
	h, err := openHub(ctx, dir)
	if err != nil {
		return l, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := h.subscribe(ctx, "127.0.0.1:9"); err != nil {
		return l, err
	}
	e := event()
	body, err := json.Marshal(api.NewEvent{Topic: e.Topic, Type: e.Type, Subject: e.Subject, Attributes: e.Attributes, Data: e.Data})
	if err != nil {
		return l, err
	}
	service := &admin.Service{
		Outbox: h.db, Enqueuer: h.db, Inbox: h.db, Name: "bench", Destinations: func() []admin.Destination { return nil },
		Hub: &admin.Hub{Publisher: h.publisher, Book: h.book, Schedule: fanout.DefaultSchedule()},
	}
	handler, err := (&httpapi.Server{Service: service}).Handler()
	if err != nil {
		return l, err
	}
	return servePublish(ctx, h, handler, func(ctx context.Context, client *http.Client, url string) error {
		return postEvent(ctx, client, url+"/v1/events", body)
	})
}

// servePublish serves a handler on the loopback, and calls it.
func servePublish(ctx context.Context, h *hub, handler http.Handler, do func(ctx context.Context, client *http.Client, url string) error) (loaded, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return loaded{}, fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: publishers}}
	return loaded{
		close: func() error { return errors.Join(server.Close(), h.Close()) },
		do:    func(ctx context.Context, _ int) error { return do(ctx, client, "http://"+listener.Addr().String()) },
	}, nil
}

func postEvent(ctx context.Context, client *http.Client, url string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err
	}
	var taken api.EventAccepted
	if err := json.Unmarshal(text, &taken); err != nil || a.StatusCode != http.StatusAccepted || taken.Matched != eventFan {
		return fmt.Errorf("the API answered %s: %.200s", a.Status, text)
	}
	return nil
}

func openBarePublish(_ context.Context, dir string) (loaded, error) {
	l, err := startBare(dir, 0, nil)
	if err != nil {
		return loaded{}, err
	}
	hash, event := make([]byte, 32), int64(0)
	l.beside = func(m *bareMessage, now int64) error {
		id := fmt.Sprintf("%x", m.id[:])
		if len(m.payload) > 0 { // an event begins
			event = m.seq
			if err := errors.Join(l.conn.exec(bareEventBundle, m.seq, m.id[:], hash, now), l.conn.exec(bareEvent, m.seq, id, now)); err != nil {
				return err
			}
		}
		return l.conn.exec(bareDelivery, m.seq, event, id)
	}
	return loaded{close: l.Close, do: func(context.Context, int) error {
		ms := make([]bareMessage, eventFan)
		for i := range ms {
			ms[i] = bareMessage{id: newID(), payload: []byte{}}
		}
		ms[0].payload = eventData
		return l.enqueue(ms...)
	}}, nil
}
