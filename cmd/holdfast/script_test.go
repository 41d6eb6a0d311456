package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
)

func TestMain(m *testing.M) {
	testscript.Main(withPostgres{m}, map[string]func(){"holdfast": main, libraryCommand: libraryMain})
}

// withPostgres ends the server that tests of a shared database have used. It
// is a durable one: a node refuses others.
type withPostgres struct{ m *testing.M }

func (w withPostgres) Run() int { return pgtest.Main(w.m, pgtest.Options{Beside: true}) }

// TestScripts runs the real main in processes of its own, against the real
// API over a stand-in store. A script has, besides testscript's commands,
//
//	exits CODE ARGS...                 run holdfast, want this exit code
//	state ID STATE                     bring a message into a state
//	keep SOURCE ID ENDPOINT PAYLOAD    receive a message that is kept
//	notified ID SUBJECT CHANNEL...     keep a notification of site plant-7 with a copy for each channel
//	fares CHANNEL ok|held REASON       say how a channel fares
//	answers accepted|refused|down      say how tests of channels end
//	copyto FOLDER NAME [PART]          copy the one database in a folder, its name has the part
//	away SITE [PROBLEM]                make a site be away; with a problem it takes questions and does not answer
//	parkat SITE ID                     park a message at a site
//	serves VARIABLE CONFIG             run a node of a file, in which variables are put; the variable gets its address
//	stops VARIABLE                     stop that node
//	until PATTERN ARGS...              run holdfast until it prints such a line
//	accounted                          the counts of a demo on stdout add up
//
// and the variables HOLDFAST_URL, a node that asks for no token, LOCKED_URL, the
// same node through a listener that does, and SITE_URL, the same messages at a
// site.
func TestScripts(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its programs runs one command, and starts ten times slower under it")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Setup: setup,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "state": setState, "keep": keep, "notified": notified, "fares": fares, "answers": answers, "accounted": accounted, "copyto": copyTo,
			"away": away, "parkat": parkAt, "serves": serves, "stops": stops, "until": until,
		},
	})
}

type (
	storeKey    struct{}
	channelsKey struct{}
	sitesKey    struct{}
)

func setup(env *testscript.Env) error {
	store := &admintest.Memory{}
	channels, sites := &admintest.Channels{}, &admintest.Sites{}
	journal := &admintest.Journal{}
	journal.Add(holdfast.FollowerInfo{Name: "counts", Running: true})
	journal.Add(holdfast.FollowerInfo{Name: "reports", Unread: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)})
	env.Values[storeKey{}], env.Values[channelsKey{}], env.Values[sitesKey{}] = store, channels, sites
	env.Values[nodesKey{}] = map[string]*exec.Cmd{}
	env.Setenv("GORACE", "atexit_sleep_ms=0") // or each process waits for a second at its end
	for _, name := range []string{"HOLDFAST_URL", "LOCKED_URL", "SITE_URL"} {
		s := admin.Service{
			Outbox: store, Enqueuer: store, Inbox: store, Tokens: store, Central: sites, Notify: store, Directory: store, Channels: channels,
			Name: "test", MaxPayload: 99, Journal: journal,
			Destinations: func() []admin.Destination {
				return []admin.Destination{{Name: "inventory", TTL: 24 * time.Hour}, {Name: "billing", Category: holdfast.CategoryExternalSystem}}
			},
		}
		if name == "SITE_URL" {
			s.Notify, s.Directory, s.Channels, s.Journal = nil, nil, nil, nil
			s.Notifier = &site.Forwarder{
				Enqueuer: store, Outbox: store, Name: "test",
				Ask: func(context.Context, holdfast.ID) (notify.Standing, error) {
					return notify.Standing{}, holdfast.ErrNotFound
				},
			}
		}
		s.Backup = func(_ context.Context, folder string) (string, int64, error) {
			return filepath.Join(folder, "x.db"), 4096, nil
		}
		operators := httpapi.Server{Service: &s}
		operators.AuthRequired = name == "LOCKED_URL"
		handler, err := operators.Handler()
		if err != nil {
			return err
		}
		server := httptest.NewServer(handler)
		env.Defer(server.Close)
		env.Setenv(name, server.URL)
	}
	return nil
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGS...")
	}
	got := 0
	if err := ts.Exec("holdfast", args[1:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("got exit code %d, want %s; stderr:\n%s", got, args[0], ts.ReadFile("stderr"))
	}
}

func setState(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: state ID STATE")
	}
	state, err := holdfast.ParseState(args[1])
	ts.Check(err)
	ts.Check(ts.Value(storeKey{}).(*admintest.Memory).Change(holdfast.ID(args[0]), func(r *holdfast.Record) {
		r.State, r.Tries, r.Failures = state, 6, 6
		r.LastError = "connection \x1b[31mrefused\nby peer"
		if state == holdfast.Parked {
			r.Reason = holdfast.ReasonExhausted
		}
		r.History = append(r.History, holdfast.Entry{
			Kind: holdfast.Attempted, State: state, At: time.Now(), Cycle: 1, Attempt: 6, Outcome: holdfast.Transient, Took: 12 * time.Millisecond,
			Code: "connection_refused", Error: r.LastError, Maybe: true,
		})
	}))
}

func away(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: away SITE [PROBLEM]")
	}
	problem := error(&link.ErrNotReachable{Site: args[0], LastSeen: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)})
	if len(args) > 1 {
		problem = link.ErrNoAnswer
	}
	ts.Value(sitesKey{}).(*admintest.Sites).Away(args[0], problem)
}

func parkAt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: parkat SITE ID")
	}
	store := ts.Value(sitesKey{}).(*admintest.Sites).At(args[0])
	_, err := store.Enqueue(context.Background(), holdfast.Message{ID: holdfast.ID(args[1]), Destination: "erp", Endpoint: "E", Payload: []byte(`{"a": 1}`)})
	ts.Check(err)
	ts.Check(store.Change(holdfast.ID(args[1]), func(r *holdfast.Record) { r.State, r.Reason = holdfast.Parked, holdfast.ReasonPermanent }))
}

func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: keep SOURCE ID ENDPOINT PAYLOAD")
	}
	_, err := ts.Value(storeKey{}).(*admintest.Memory).Keep(context.Background(), 0, holdfast.Message{
		ID: holdfast.ID(args[1]), Source: args[0], Endpoint: args[2], Kind: holdfast.Command, Payload: []byte(args[3]),
	})
	ts.Check(err)
}

func notified(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: notified ID SUBJECT CHANNEL...")
	}
	store := ts.Value(storeKey{}).(*admintest.Memory)
	subject, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	ts.Check(store.Notified(context.Background(), notify.Notification{
		ID: holdfast.ID(args[0]), List: "operators", Subject: subject, Body: "It is \x1b[31mhot.\n", Origin: notify.Origin{Site: "plant-7", Script: "pumps"},
	}, args[2:]...))
	store.Reach(holdfast.ID(args[0]), notify.Target{
		Channel: args[2], Address: "jane@example.com", Name: "Doe,\x1b[31m Jane", Result: notify.Refused, Code: "550 5.1.1", Text: "no such user", Attempts: 2,
	})
}

func fares(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fares CHANNEL ok|held REASON")
	}
	ts.Value(channelsKey{}).(*admintest.Channels).Fares(args[0], holdfast.LaneStatus{Up: args[1] == "ok", Held: args[1] == "held", Problem: args[2], InFlight: 2})
}

func answers(ts *testscript.TestScript, neg bool, args []string) {
	reports := map[string]notify.Report{
		"accepted": {Server: "mx:587", TLS: "TLS 1.3", To: []notify.Delivery{{Outcome: notify.Accepted, Code: "250", Receipt: "q7"}}},
		"refused":  {To: []notify.Delivery{{Outcome: notify.Refused, Code: "550 5.1.1", Text: "no\nsuch \x1buser"}}},
		"down":     {Fault: &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused", Err: errors.New("connection refused")}},
	}
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers accepted|refused|down")
	}
	ts.Value(channelsKey{}).(*admintest.Channels).Answer(reports[args[0]])
}

func copyTo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: copyto FOLDER NAME [PART]")
	}
	part := "holdfast-*.db"
	if len(args) == 3 {
		part = "*" + args[2] + "*Z"
	}
	found, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), part))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("found %q in %s, want one", found, args[0])
	}
	content, err := os.ReadFile(found[0])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o600))
}

// served is an app whose node is f, and whose signals the test sends.
func served(f func(ctx context.Context, o ServeOptions) error) (a *app, signals chan<- os.Signal, stderr *bytes.Buffer, exited chan int) {
	stderr, exited = &bytes.Buffer{}, make(chan int, 1)
	pass := make(chan os.Signal)
	a = &app{
		stdin: &bytes.Buffer{}, stdout: &bytes.Buffer{}, stderr: stderr, serve: f,
		env:    config.Env{Kinds: node.DestinationKinds(), Host: func() (string, error) { return "plant-7", nil }, Lookup: func(string) (string, bool) { return "", false }},
		exit:   func(code int) { exited <- code },
		ignore: func(...os.Signal) {},
		notify: func(c chan<- os.Signal, _ ...os.Signal) func() {
			done := make(chan struct{})
			go func() {
				for {
					select {
					case s := <-pass:
						c <- s
					case <-done:
						return
					}
				}
			}()
			return func() { close(done) }
		},
	}
	return a, pass, stderr, exited
}

func TestTheFirstSignalStopsANodeGracefully(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	a, signals, stderr, _ := served(func(ctx context.Context, o ServeOptions) error {
		if o.Config.Node.ID != "here" || o.Config.Listen != "127.0.0.1:0" || o.Version == "" {
			return fmt.Errorf("got %+v", o.Config)
		}
		close(running)
		<-ctx.Done()
		return nil
	})
	code := make(chan int)
	go func() { code <- a.run(t.Context(), []string{"serve", "--node-id", "here", "--listen", "127.0.0.1:0"}) }()
	select {
	case <-running:
		signals <- os.Interrupt
	case got := <-code:
		t.Fatalf("got %d before a signal: %s", got, stderr)
	}
	if got := <-code; got != exitOK {
		t.Errorf("got exit code %d, want 0: %s", got, stderr)
	}
	if want := "holdfast: interrupt: stopping; a second one ends it at once\n"; stderr.String() != want {
		t.Errorf("got %q, want %q", stderr, want)
	}
}

func TestTheSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	running, release := make(chan struct{}), make(chan struct{})
	a, signals, _, exited := served(func(context.Context, ServeOptions) error {
		close(running)
		<-release // deaf
		return nil
	})
	code := make(chan int)
	go func() { code <- a.run(t.Context(), []string{"serve"}) }()
	<-running
	signals <- os.Interrupt
	signals <- os.Interrupt
	if got := <-exited; got != exitFailure {
		t.Errorf("got exit code %d, want 1", got)
	}
	close(release)
	<-code
}

func TestANodeThatFailsIsAFailure(t *testing.T) {
	t.Parallel()
	a, _, stderr, _ := served(func(context.Context, ServeOptions) error { return errors.New("open database: disk full") })
	if got := a.run(t.Context(), []string{"serve"}); got != exitFailure || stderr.String() != "holdfast: open database: disk full\n" {
		t.Errorf("got %d %q, want 1 and the error", got, stderr)
	}
}
