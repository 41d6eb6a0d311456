//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// slow is what a machine that does other things may add to a limit. What these
// tests are about took far longer, or did not end.
const slow = 6 * time.Second

// ends tells the process to stop and wants it to be gone within a time.
func (p *child) ends(limit time.Duration) error {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.gone(began, limit)
}

func (p *child) gone(began time.Time, limit time.Duration) error {
	p.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		p.cmd = nil
		if took := time.Since(began); took > limit+slow {
			p.t.Errorf("the stop took %v, want %v at most", took, limit)
		}
		return err
	case <-time.After(limit + 20*time.Second):
		p.t.Errorf("the node runs on %v after it was told to stop", time.Since(began))
		_ = p.cmd.Process.Kill()
		p.cmd = nil
		return <-ended
	}
}

// F1-53: nobody reads what the node writes, and then the reader is gone.
func TestALogThatNobodyReadsCostsLines(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "thousands of messages, so that a pipe is full; package logs races its writer")
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	c := &child{t: t, address: freeAddress(t), data: t.TempDir(), reader: to}
	c.args = serveArgs(t, t.TempDir(), "node", fmt.Sprintf("listen: %s\ndata: %s\nstop: 5s\n", c.address, c.data))
	t.Cleanup(c.kill)
	c.start()
	_ = to.Close()
	c.ready()
	client := &http.Client{Timeout: 30 * time.Second}
	long := strings.Repeat("e", 100)
	post := func(n int) {
		body := fmt.Sprintf(`{"id": "m%d", "destination": "self", "endpoint": %q, "payload": 1}`, n, long)
		r, err := client.Post(c.url()+"/v1/messages", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatalf("message %d: %v", n, err)
		}
		if r.Body.Close(); r.StatusCode != http.StatusAccepted {
			t.Fatalf("message %d: got %s", n, r.Status)
		}
	}
	sent := 0
	lost := func() bool { return !strings.Contains(get(t, c.url()+"/metrics"), "\nholdfast_log_lines_lost 0\n") }
	for sent < 20_000 && (sent%500 != 0 || !lost()) {
		sent++
		post(sent)
	}
	if !lost() {
		t.Fatalf("no line is lost after %d messages", sent)
	}
	delivered := func() bool {
		var stats struct{ Pending int }
		return getJSON(c.url()+"/_rf/outbox/stats", &stats) == nil && stats.Pending == 0
	}
	eventually(t, "all are delivered", delivered)
	if got := get(t, c.url()+"/_rf/health"); !strings.Contains(got, `"log"`) || !strings.Contains(got, "could not be written") {
		t.Errorf("health says %s", got)
	}
	_ = from.Close() // by SIGPIPE that was the end
	sent++
	post(sent)
	eventually(t, "all are delivered, with the reader gone", delivered)
	if err := c.ends(5*time.Second + 2*time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// F1-37: the database does not answer. What is in hand is left to the lease.
func TestAStopWithADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	c := sharing(t, server.Database(t), "a", "stop: 2s\ndrain: 0s\ndestinations: {away: {call: {url: \"http://127.0.0.1:1/\"}}}\n").running()
	succeeds(t, "send", "away", "Order", "1", "--no-attempt", "--url", c.url())
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	err := c.ends(2*time.Second + 2*time.Second)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if err != nil || !strings.Contains(c.tail(), "left to the lease") {
		t.Errorf("got %v, want it to say what it left to the lease\n%s", err, c.tail())
	}
	c.running()
	if err := c.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, c.tail())
	}
}

// F1-87: a node that is told to stop says so to load balancers and serves on for
// the drain; with a log for programs each line of it is JSON.
func TestAStopDrainsFirst(t *testing.T) {
	t.Parallel()
	c := serving(t, "stop: 60s\ndrain: 20s\nlog: {format: json}\n")
	began := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readyz says that it stops", func() bool {
		r, err := http.Get(c.url() + "/readyz")
		if err != nil {
			t.Fatalf("the listener is closed, and readyz has said nothing: %v", err)
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusServiceUnavailable
	})
	if !submit(c.url(), `{"id": "late", "destination": "self", "endpoint": "E", "payload": 1}`) {
		t.Error("a message is not taken while the node is drained")
	}
	eventually(t, "it is delivered while the node is drained", func() bool {
		return strings.Contains(get(t, c.url()+"/v1/messages/late"), `"delivered"`)
	})
	if err := c.gone(began, 60*time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took < 20*time.Second {
		t.Errorf("the drain took %v, want 20s", took)
	}
	said := map[string]bool{}
	for s := bufio.NewScanner(strings.NewReader(c.tail())); s.Scan(); {
		var line struct {
			Msg string `json:"msg"`
		}
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Errorf("%q is no JSON: %v", s.Text(), err)
		}
		said[line.Msg] = true
	}
	for _, want := range []string{"listening", "started", "stopping", "stopped"} {
		if !said[want] {
			t.Errorf("no line says %q:\n%s", want, c.tail())
		}
	}
}

// A second signal ends the node at once, whatever is in hand.
func TestASecondSignalEndsTheNodeAtOnce(t *testing.T) {
	t.Parallel()
	c := serving(t, "stop: 60s\ndrain: 60s\n")
	began := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopping", func() bool { return strings.Contains(c.tail(), "terminated: stopping") })
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := c.gone(began, time.Second)
	if err == nil || !strings.Contains(c.tail(), "ending at once") {
		t.Errorf("got %v\n%s", err, c.tail())
	}
}

// F1-38: SIGHUP reloads what can be, says what cannot, and ends nothing.
func TestAHangupReloads(t *testing.T) {
	t.Parallel()
	c := serving(t, "log: {level: info}\npoll: 1s\n")
	config := c.args[len(c.args)-1]
	hup := func(text, want string) {
		t.Helper()
		write(t, config, text)
		if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it says "+want, func() bool { return strings.Contains(c.tail(), want) })
	}
	hup("log: {level: warn}\npoll: 2s\n", "setting=poll")
	if !strings.Contains(c.tail(), "setting=log.level value=warn") {
		t.Errorf("it said\n%s", c.tail())
	}
	hup("log: {level: loud}\n", "configuration not reloaded")
	hup("log: {level: error}\npoll: 1s\n", "setting=log.level value=error")
	if !submit(c.url(), `{"id": "quiet", "destination": "self", "endpoint": "E", "payload": 1}`) {
		t.Error("a message is not taken")
	}
	if strings.Contains(c.tail(), "message_id=quiet") {
		t.Errorf("with level error it said\n%s", c.tail())
	}
	if err := c.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, c.tail())
	}
}

// F1-38: also while it starts.
func TestAHangupDuringTheStartIsNoKill(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	a, signals, stderr, _ := served(func(ctx context.Context, o ServeOptions) error {
		<-o.Reload
		close(started)
		<-ctx.Done()
		return nil
	})
	lookup := a.env.Lookup
	first := make(chan struct{}, 1)
	first <- struct{}{}
	a.env.Lookup = func(name string) (string, bool) {
		select {
		case <-first:
			signals <- syscall.SIGHUP // the configuration is being read
		default:
		}
		return lookup(name)
	}
	code := make(chan int, 1)
	go func() { code <- a.run(t.Context(), []string{"serve"}) }()
	<-started
	signals <- syscall.SIGTERM
	if got := <-code; got != exitOK {
		t.Errorf("got %d: %s", got, stderr)
	}
}

// F1-54: damage that is found while the node runs is nothing that the command
// line could mend: its supervisor starts it again, and then it is set aside.
func TestDamageWhileRunningAsksForARestart(t *testing.T) {
	t.Parallel()
	c := serving(t, "")
	for n := range 400 {
		if !submit(c.url(), fmt.Sprintf(`{"id": "m%d", "destination": "self", "endpoint": "E", "payload": %q}`, n, strings.Repeat("x", 4000))) {
			t.Fatal("a message is not taken")
		}
	}
	eventually(t, "the log is in the database", func() bool {
		info, err := os.Stat(c.data + "/holdfast.db")
		return err == nil && info.Size() > 1<<20
	})
	f, err := os.OpenFile(c.data+"/holdfast.db", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte("no"), int(info.Size()-4096)/2), 4096); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.cmd.Wait() }()
	for n := 0; ; n++ {
		select {
		case err := <-ended:
			if code := c.cmd.ProcessState.ExitCode(); code != exitFailure {
				t.Errorf("%v: exit code %d, want %d\n%s", err, code, exitFailure, c.tail())
			}
			c.cmd = nil
			c.running()
			return
		case <-time.After(20 * time.Millisecond):
		}
		if n > 2000 {
			t.Fatalf("the damage is not found\n%s", c.tail())
		}
		submit(c.url(), fmt.Sprintf(`{"id": "n%d", "destination": "self", "endpoint": "E", "payload": 1}`, n))
		if r, err := http.Get(c.url() + "/v1/messages?limit=500"); err == nil {
			_ = r.Body.Close()
		}
	}
}

// A panic of the program must not look like wrong use, which supervisors do not
// start again: SIGQUIT ends a Go program as a panic does.
func TestAPanicDoesNotEndAsWrongUseDoes(t *testing.T) {
	t.Parallel()
	c := serving(t, "")
	began := time.Now()
	if err := c.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	p := c.cmd
	_ = c.gone(began, time.Minute)
	if code := p.ProcessState.ExitCode(); code == exitUsage || code == exitOK {
		t.Errorf("exit code %d", code)
	}
}

// F1-122, F1-123, F1-128: commits hang, as without a synchronous standby, while
// the server answers every question. The node says so to people, load balancers
// and callers, a restart is not asked for, and a stop keeps its bound.
func TestCommitsThatHang(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	dsn := server.Database(t)
	c := sharing(t, dsn, "a", "stop: 2s\ndrain: 0s\n").running()
	if !submit(c.url(), `{"destination": "self", "endpoint": "E", "payload": 1}`) { // its names are known from here on
		t.Fatal("a message is not taken")
	}
	if err := server.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = 'nobody'`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "readiness fails", func() bool { return strings.Contains(get(t, c.url()+"/readyz"), "database takes no commits") })
	eventually(t, "health says what is waited for", func() bool {
		h := get(t, c.url()+"/_rf/health")
		return strings.Contains(h, `"name":"database","status":"failing"`) && strings.Contains(h, "SyncRep") && strings.Contains(h, "'nobody'")
	})
	if got := get(t, c.url()+"/healthz"); got != "ok\n" {
		t.Errorf("/healthz said %q", got)
	}
	answers := c.submitsHanging(6)
	eventually(t, "a message waits for its commit", func() bool { return hangs(t, dsn, "hf_message") })
	if err := c.ends(2*time.Second + 2*time.Second); err != nil {
		t.Errorf("the stop kept its bound and lost nothing: got %v\n%s", err, c.tail())
	}
	unknown := 0
	for range cap(answers) {
		switch a := <-answers; {
		case a == "outcome-unknown, and its id":
			unknown++
		case a != "unavailable":
			t.Errorf("a caller got %s", a)
		}
	}
	if unknown == 0 {
		t.Error("nobody was told that the outcome is unknown")
	}
	if !strings.Contains(c.tail(), "left to the lease") || strings.Contains(c.tail(), "cut off") {
		t.Errorf("it said\n%s", c.tail())
	}
	if err := server.Exec("postgres", `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`); err != nil {
		t.Fatal(err)
	}
}

// submitsHanging has n callers submit messages, and tells what each is answered.
func (p *child) submitsHanging(n int) <-chan string {
	answers := make(chan string, n)
	for range n {
		go func() {
			const body = `{"destination": "self", "endpoint": "E", "payload": 1}`
			r, err := http.Post(p.url()+"/v1/messages", "application/json", strings.NewReader(body))
			if err != nil {
				answers <- err.Error()
				return
			}
			defer r.Body.Close()
			var problem struct {
				Type    string `json:"type"`
				Message string `json:"message"`
			}
			err = json.NewDecoder(r.Body).Decode(&problem)
			answers <- verdictOn(r.StatusCode, problem.Type, problem.Message != "", err)
		}()
	}
	return answers
}

// verdictOn says in a word what a caller learns from a problem.
func verdictOn(status int, kind string, named bool, err error) string {
	switch {
	case err != nil, status != http.StatusServiceUnavailable:
		return fmt.Sprintf("%d %s, %v", status, kind, err)
	case strings.HasSuffix(kind, "outcome-unknown") && named:
		return "outcome-unknown, and its id"
	case strings.HasSuffix(kind, "unavailable"):
		return "unavailable"
	}
	return kind
}

// hangs says whether a commit that has written to a table waits for standbys.
func hangs(t *testing.T, dsn, table string) (so bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const query = `SELECT EXISTS (SELECT FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE wait_event = 'SyncRep' AND relation = $1::regclass AND mode = 'RowExclusiveLock')`
	if err := conn.QueryRow(t.Context(), query, table).Scan(&so); err != nil {
		t.Fatal(err)
	}
	return so
}
