package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/mailpittest"
	"github.com/holdfast-mq/holdfast/internal/mariatest"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// centralNode is a central whose people are reached over one mail server. more
// is further configuration.
func centralNode(t *testing.T, dir string, smtpPort int, more string) *child {
	t.Helper()
	c := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "central")}
	seed := filepath.Join(dir, "seed.yaml")
	write(t, seed, fmt.Sprintf(`
channels:
  mail:
    kind: email
    settings: {host: 127.0.0.1, port: %d, tls: none, from: alarm@plant.test}
    retry: {attempts: 1000, interval: 500ms}
lists:
  operators: {recipients: [{channel: mail, address: jane@plant.test}, {channel: mail, address: john@plant.test}]}
  gone: {recipients: [{channel: mail, address: joe@elsewhere.test}]}
`, smtpPort))
	c.args = serveArgs(t, dir, "central", fmt.Sprintf(`
node: {id: central}
role: central
listen: %s
data: %s
log: {level: error}
notifications: {seed: %s, window: 1h}
%s`, c.address, c.data, seed, more))
	t.Cleanup(c.kill)
	return c.running()
}

// siteNode is a site that has enrolled at central, as its operators do it.
func siteNode(t *testing.T, dir, name string, central *child, more string) *child {
	t.Helper()
	c := &child{t: t, address: freeAddress(t), data: filepath.Join(dir, name)}
	c.args = serveArgs(t, dir, name, fmt.Sprintf(`
node: {id: %s}
role: site
listen: %s
data: %s
log: {level: error}
central: {url: "%s", timeout: 5s}
%s`, name, c.address, c.data, central.url(), more))
	token := strings.TrimSpace(succeeds(t, "sites", "add", name, "--url", central.url()))
	succeeds(t, "enroll", central.url(), token, "--file", filepath.Join(c.data, "credential"))
	t.Cleanup(c.kill)
	return c.running()
}

// asked is a client of a node.
func asked(t *testing.T, node *child) *client.Client {
	t.Helper()
	c, err := client.New(node.url(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// parcel is what a site was told to bring somewhere.
type parcel struct {
	site, to, id string
	parks        string // the reason, while what is in its way stands; empty: it arrives
}

// The places that parcels go to; people are reached through central.
const (
	people   = "central"
	mes      = "mes"   // takes calls
	press    = "press" // takes one call, and that late
	postgres = "pg"
	mariadb  = "maria"
)

// journey is two sites and a central as processes, the places that they reach,
// and the ledger of what was sent.
type journey struct {
	t       *testing.T
	central *child
	sites   map[string]*child
	clients map[string]*client.Client // by site; central's under its own name
	mail    *mailpittest.Server
	target  *target
	rows    map[string]*sql.DB // by destination

	mu   sync.Mutex
	sent []parcel // accepted ones
}

func newJourney(t *testing.T) *journey {
	t.Helper()
	dir := t.TempDir()
	j := &journey{
		t: t, sites: map[string]*child{}, clients: map[string]*client.Client{}, rows: map[string]*sql.DB{},
		mail:   mailpittest.Start(t, "--database", filepath.Join(dir, "mails.db"), "--max", "0", "--smtp-allowed-recipients", `@plant\.test$`),
		target: &target{effects: map[string]string{}, calls: map[string]int{}, seen: map[mood]*atomic.Int64{broken: {}, silent: {}, refusing: {}}},
	}
	j.target.refuse(true)
	server := httptest.NewServer(j.target)
	t.Cleanup(server.Close)
	maria := mariatest.Start(t)
	for name, d := range map[string]struct{ driver, dsn string }{
		postgres: {"pgx", pgtest.Shared(t).Database(t)}, mariadb: {"mysql", maria.DSN(maria.Database(t))},
	} {
		write(t, filepath.Join(dir, name), d.dsn)
		db, err := sql.Open(d.driver, d.dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		if _, err := db.ExecContext(t.Context(), "create table orders (id varchar(64) primary key, site varchar(64) not null, n integer not null)"); err != nil {
			t.Fatal(err)
		}
		j.rows[name] = db
	}
	j.central = centralNode(t, dir, j.mail.Port, "")
	j.clients[people] = asked(t, j.central)
	again := "timeout: 2s, retry: {policy: fixed, interval: 200ms, retries: "
	for _, name := range []string{"plant-1", "plant-2"} {
		j.sites[name] = siteNode(t, dir, name, j.central, fmt.Sprintf(`
destinations:
  mes: {call: {url: "%[1]s/{endpoint}"}, %[2]s 0}}
  press: {call: {url: "%[1]s/{endpoint}"}, %[2]s 2}}
  pg:
    write:
      driver: postgres
      dsn: {file: pg}
      statements: {Book: "insert into orders (id, site, n) values (:_id, :site, :n) on conflict (id) do nothing"}
    %[3]s
  maria:
    write:
      driver: mysql
      dsn: {file: maria}
      statements: {Book: "insert into orders (id, site, n) values (:_id, :site, :n)"}
      types: {site: text, n: integer}
      duplicate: delivered
    %[3]s
`, server.URL, again, "timeout: 10s\n    retry: {policy: fixed, interval: 200ms, retries: 0}"))
		j.clients[name] = asked(t, j.sites[name])
	}
	return j
}

// send hands a parcel to its site, as a program does: until it is accepted.
func (j *journey) send(ctx context.Context, p parcel, n int) {
	var err error
	c, payload := j.clients[p.site], fmt.Sprintf(`{"site": %q, "n": %d}`, p.site, n)
	switch p.to {
	case people:
		list := "operators"
		if p.parks != "" {
			list = "gone"
		}
		_, err = c.Notifications().Send(ctx, api.NewNotification{ID: p.id, List: list, Subject: "Batch " + p.id, Body: payload})
	default:
		endpoint, wait := "Book", false
		if p.parks == "permanent" {
			endpoint = "Refused"
		}
		if p.parks == "exhausted" {
			endpoint = "Late"
		}
		_, err = c.Messages().Send(ctx, api.NewMessage{ID: p.id, Destination: p.to, Endpoint: endpoint, Payload: []byte(payload), AttemptImmediately: &wait})
	}
	if err != nil {
		j.t.Errorf("%s was not accepted: %v", p.id, err)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sent = append(j.sent, p)
}

// mood is how a target answers.
type mood int

const (
	well     mood = iota
	broken        // 500, and nothing was done
	silent        // it is done, and no answer comes
	refusing      // 422 and 500 for endpoints of their own
)

// target is a program that is called, and does once what has one
// Idempotency-Key. It is used concurrently.
type target struct {
	seen map[mood]*atomic.Int64 // requests that met it so

	mu      sync.Mutex
	mood    mood
	refuses bool
	effects map[string]string // body by key
	calls   map[string]int    // that were done, by key
}

func (p *target) feel(m mood) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mood = m
}

func (p *target) refuse(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = yes
}

func (p *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut off
	}
	switch status := p.do(r.URL.Path, r.Header.Get("Idempotency-Key"), string(body)); status {
	case 0:
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	default:
		w.WriteHeader(status)
	}
}

// do answers with a status, 0 for none.
func (p *target) do(path, key, body string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.refuses && path == "/Refused":
		p.seen[refusing].Add(1)
		return http.StatusUnprocessableEntity
	case p.refuses && path == "/Late":
		return http.StatusInternalServerError
	case p.mood == broken:
		p.seen[broken].Add(1)
		return http.StatusInternalServerError
	}
	p.calls[key]++
	if _, done := p.effects[key]; !done {
		p.effects[key] = body
	}
	if p.mood == silent {
		p.seen[silent].Add(1)
		return 0
	}
	return http.StatusOK
}
