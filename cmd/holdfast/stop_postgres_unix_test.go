//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
)

// stopping is a node on a healthy database, whose lease no slow machine loses.
func stopping(t *testing.T, dsn, more string) *child {
	t.Helper()
	c := sharing(t, dsn, "a", "drain: 0s\n"+more)
	path := c.args[len(c.args)-1]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(text), "lease: 1s", "lease: 1m", 1))
	return c.running()
}

// leftNothing wants a store that the node has left with nothing in hand.
func (p *child) leftNothing(dsn string) {
	p.t.Helper()
	for what, query := range map[string]string{
		"nodes":  `SELECT count(*) FROM hf_node`,
		"claims": `SELECT count(*) FROM hf_queue WHERE owner IS NOT NULL`,
	} {
		if n := counted(p.t, dsn, query); n != 0 {
			p.t.Errorf("%d %s are left", n, what)
		}
	}
	for _, not := range []string{"left to the lease", "not recorded", "cut off: "} {
		if strings.Contains(p.tail(), not) {
			p.t.Errorf("it said %q:\n%s", not, p.tail())
		}
	}
}

func counted(t *testing.T, dsn, query string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// F1-123: a stop outlasts its grace, because a destination does not answer, and
// the database is well: what was cut off is recorded, and nothing is left behind.
func TestAStopThatCutsAnAttemptOffRecordsIt(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	asked := make(chan struct{}, 10)
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the caller has gone
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(mute.Close)
	c := stopping(t, dsn, fmt.Sprintf("stop: 2s\ndestinations: {mute: {call: {url: %q}}}\n", mute.URL))
	succeeds(t, "send", "mute", "Order", "1", "--no-attempt", "--url", c.url())
	<-asked
	if err := c.ends(2*time.Second + 2*time.Second); err != nil {
		t.Errorf("stop: %v\n%s", err, c.tail())
	}
	c.leftNothing(dsn)
	if n := counted(t, dsn, `SELECT count(*) FROM hf_entry WHERE attempt = 1`); n != 1 {
		t.Errorf("%d attempts are recorded, want 1", n)
	}
}

// F1-123, NO-12: a mail whose last dot has left is answered long after the grace.
// The answer is recorded, so that nobody gets the mail twice.
func TestAStopRecordsTheAnswerToAMail(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	box := newSlowBox(t)
	seed := filepath.Join(t.TempDir(), "seed.yaml")
	write(t, seed, fmt.Sprintf(`
channels: {mail: {kind: email, settings: {host: 127.0.0.1, port: %d, tls: none, from: alarm@plant.test}}}
lists: {operators: {recipients: [{channel: mail, address: jane@plant.test}]}}
`, box.port))
	c := stopping(t, dsn, fmt.Sprintf("role: central\nstop: 1s\nnotifications: {seed: %s}\n", seed))
	if !submitTo(c.url()+"/v1/notifications", `{"id": "n1", "list": "operators", "subject": "Tank 4 is full"}`) {
		t.Fatal("a notification is not taken")
	}
	<-box.has
	began := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grace is over, and the last words are", func() bool { return strings.Contains(c.tail(), "waits for the answer to a mail") })
	close(box.answers)
	if err := c.gone(began, 30*time.Second); err != nil {
		t.Errorf("stop: %v\n%s", err, c.tail())
	}
	c.leftNothing(dsn)
	if n := counted(t, dsn, `SELECT count(*) FROM hf_queue`); n != 0 {
		t.Errorf("%d notifications wait, and are sent again", n)
	}
	if n := counted(t, dsn, `SELECT count(*) FROM hf_notification_end`); n != 1 {
		t.Errorf("%d notifications have come to an end, want 1", n)
	}
}

// slowBox takes mails and answers when it is told to.
type slowBox struct {
	port    int
	has     chan struct{} // a value: it has a whole mail
	answers chan struct{} // closed: it answers
}

func newSlowBox(t *testing.T) *slowBox {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &slowBox{port: l.Addr().(*net.TCPAddr).Port, has: make(chan struct{}, 10), answers: make(chan struct{})}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &slowly{box: b}, nil }))
	server.Domain, server.ErrorLog = "mail.test", quiet{}
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		ended.Wait()
	})
	return b
}

// slowly is a session of it.
type slowly struct {
	delivery
	box *slowBox
}

// Data takes a whole mail, and does not answer yet.
func (s *slowly) Data(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	s.box.has <- struct{}{}
	<-s.box.answers
	return nil
}
