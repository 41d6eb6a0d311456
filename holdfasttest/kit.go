package holdfasttest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// Kit is the store of one test. The end of the test closes it.
type Kit struct {
	DB  *sqlite.DB
	SQL *sql.DB // the database to which the store is attached; nil after New

	tb testing.TB
}

// New opens a store in its own temporary file. Messages enqueued with it have the source "test".
func New(tb testing.TB) *Kit {
	tb.Helper()
	db, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "holdfast.db"), options())
	if err != nil {
		tb.Fatalf("open the store: %v", err)
	}
	k := &Kit{DB: db, tb: tb}
	tb.Cleanup(func() { k.close(db.Close) })
	return k
}

// Attach opens a database in a temporary file, runs the statements, which create the program's own
// tables, and attaches a store to it.
func Attach(tb testing.TB, statements ...string) *Kit {
	tb.Helper()
	path := (&url.URL{Path: filepath.ToSlash(filepath.Join(tb.TempDir(), "app.db"))}).EscapedPath()
	handle, err := sql.Open("sqlite", "file:"+path+
		"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		tb.Fatalf("open a database: %v", err)
	}
	k := &Kit{SQL: handle, tb: tb}
	tb.Cleanup(func() { k.close(handle.Close) })
	for _, s := range statements {
		if _, err := handle.ExecContext(tb.Context(), s); err != nil {
			tb.Fatalf("run %q: %v", s, err)
		}
	}
	if k.DB, err = sqlite.Attach(tb.Context(), handle, options()); err != nil {
		tb.Fatalf("attach the store: %v", err)
	}
	tb.Cleanup(func() { k.close(k.DB.Close) }) // runs before the cleanup of the handle
	return k
}

// A bubble of testing/synctest begins in the year 2000. That is no reason to distrust the clock
// here.
func options() sqlite.Options {
	return sqlite.Options{Source: "test", SaneAfter: time.Unix(1, 0)}
}

func (k *Kit) close(end func() error) {
	if err := end(); err != nil {
		k.tb.Errorf("close: %v", err)
	}
}

// Message returns a payload as a message from elsewhere, with a new id and the source "test".
// Passing the same Message twice is a repeat.
func (k *Kit) Message(p holdfast.Payload) holdfast.Message {
	k.tb.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		k.tb.Fatalf("encode %T: %v", p, err)
	}
	return holdfast.Message{ID: holdfast.NewID(), Source: "test", Endpoint: p.Endpoint(), Kind: holdfast.Signal, Payload: b}
}

// Enqueued returns the messages that wait for a destination, due or not, in the order in which they
// were accepted. It fails the test if there are none.
func (k *Kit) Enqueued(destination string) []holdfast.Message {
	k.tb.Helper()
	ms := k.waiting(destination)
	if len(ms) == 0 {
		k.tb.Fatalf("no message waits for %s; %s", destination, k.contents())
	}
	return ms
}

// NothingEnqueued fails the test if a message waits for one of the destinations. Without
// destinations it fails if any message waits.
func (k *Kit) NothingEnqueued(destinations ...string) {
	k.tb.Helper()
	if len(destinations) == 0 {
		destinations = []string{""}
	}
	for _, d := range destinations {
		if n := len(k.waiting(d)); n > 0 {
			k.tb.Fatalf("%d messages wait, want none; %s", n, k.contents())
		}
	}
}

// Payloads returns the decoded payloads of the messages that wait for a destination at the endpoint
// of P, in the order in which they were accepted. It fails the test if there are none, or if one
// cannot be decoded.
func Payloads[P holdfast.Payload](k *Kit, destination string) []P {
	k.tb.Helper()
	var list []P
	var zero P
	for _, m := range k.waiting(destination) {
		if m.Endpoint != zero.Endpoint() {
			continue
		}
		var p P
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			k.tb.Fatalf("payload of message %s for %s is no %T: %v: %s", m.ID, destination, p, err, m.Payload)
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		k.tb.Fatalf("no %T waits for %s at %s; %s", zero, destination, zero.Endpoint(), k.contents())
	}
	return list
}

// waiting returns the messages that wait for a destination, oldest first. With an empty destination
// it returns all except callbacks.
func (k *Kit) waiting(destination string) []holdfast.Message {
	k.tb.Helper()
	var list []holdfast.Message
	for _, r := range k.records(destination, holdfast.Pending, holdfast.Claimed) {
		if destination == "" && r.Message.Destination == holdfast.EndedDestination {
			continue
		}
		full, err := k.DB.Get(context.Background(), r.Message.ID)
		if err != nil {
			k.tb.Fatal(err)
		}
		list = append(list, full.Message)
	}
	return list
}

func (k *Kit) records(destination string, states ...holdfast.State) []holdfast.Record {
	k.tb.Helper()
	var list []holdfast.Record
	q := holdfast.Query{States: states, Destination: destination, Limit: 500}
	for more := true; more; more = q.After != "" {
		p, err := k.DB.List(context.Background(), q)
		if err != nil {
			k.tb.Fatal(err)
		}
		list, q.After = append(list, p.Records...), p.Next
	}
	slices.Reverse(list)
	return list
}

// contents lists the outbox for the text of a failure.
func (k *Kit) contents() string {
	k.tb.Helper()
	const most = 20
	all := k.records("")
	if len(all) == 0 {
		return "the outbox is empty"
	}
	var b strings.Builder
	b.WriteString("the outbox holds:")
	for i, r := range all {
		if i == most {
			fmt.Fprintf(&b, "\n\tand %d more", len(all)-most)
			break
		}
		payload := ""
		if full, err := k.DB.Get(context.Background(), r.Message.ID); err == nil {
			payload = string(full.Message.Payload[:min(len(full.Message.Payload), 120)])
		}
		fmt.Fprintf(&b, "\n\t%s %s for %s at %s: %s", r.State, r.Message.ID, r.Message.Destination, r.Message.Endpoint, payload)
		if r.LastError != "" {
			fmt.Fprintf(&b, " (%s %s)", r.Reason, r.LastError)
		}
	}
	return b.String()
}
