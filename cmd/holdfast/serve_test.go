package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serving starts a node that the test stops.
func serving(t *testing.T, config string) *child {
	t.Helper()
	c := &child{t: t, address: freeAddress(t), data: filepath.Join(t.TempDir(), "data")}
	c.args = []string{"holdfast", "serve", "--listen", c.address, "--data", c.data}
	if config != "" {
		path := filepath.Join(t.TempDir(), "holdfast.yaml")
		write(t, path, config)
		c.args = append(c.args, "--config", path)
	}
	c.start()
	t.Cleanup(c.kill)
	c.ready()
	return c
}

// command runs holdfast to its end.
func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := exec.LookPath("holdfast")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	_ = cmd.Run()
	return out.String(), complaint.String(), cmd.ProcessState.ExitCode()
}

func refused(t *testing.T, code int, wants []string, args ...string) {
	t.Helper()
	_, stderr, got := command(t, args...)
	if got != code {
		t.Errorf("holdfast %s: exit code %d, want %d; it said: %s", strings.Join(args, " "), got, code, stderr)
	}
	for _, want := range wants {
		if !strings.Contains(stderr, want) {
			t.Errorf("holdfast %s said %q, want it to hold %q", strings.Join(args, " "), stderr, want)
		}
	}
}

// eventually asks until the answer is there, for half a minute.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventuallyWithin(t, what, 30*time.Second, ok)
}

// eventuallyWithin is eventually with a limit of its own.
func eventuallyWithin(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !ok() {
		if ctx.Err() != nil {
			t.Fatalf("%s: not within %v", what, limit)
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// The README's first steps: no file, one message, its own inbox, and all of
// it still there after a restart.
func TestANewcomersFirstNode(t *testing.T) {
	t.Parallel()
	c := serving(t, "")
	for _, want := range []string{"listening   " + c.url(), "Send a first message", "curl -s " + c.url()} {
		eventually(t, "the node says "+want, func() bool { return strings.Contains(c.tail(), want) })
	}
	resp, err := http.Post(c.url()+"/v1/messages", "application/json", strings.NewReader(`{"destination": "self", "endpoint": "Hello", "payload": {"n":  1}}`))
	if err != nil {
		t.Fatal(err)
	}
	var sent struct {
		ID         string `json:"id"`
		State      string `json:"state"`
		Durability string `json:"durability"`
		Accepted   bool   `json:"accepted"`
	}
	err = json.NewDecoder(resp.Body).Decode(&sent)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusAccepted || !sent.Accepted || sent.State != "pending" || sent.Durability != "local" {
		t.Fatalf("got %d %+v, %v", resp.StatusCode, sent, err)
	}
	inbox := func() string {
		out, _, _ := command(t, "inbox", "ls", "--json", "--url", c.url())
		return out
	}
	eventually(t, "the message in the inbox", func() bool { return strings.Contains(inbox(), sent.ID) })
	if got := get(t, c.url()+"/v1/inbox"); !strings.Contains(got, `{"n":  1}`) {
		t.Errorf("inbox %s, want the payload's own bytes", got)
	}
	if err := c.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, c.tail())
	}
	c.start()
	c.ready()
	if got := inbox(); !strings.Contains(got, sent.ID) {
		t.Errorf("after a restart the inbox is %s", got)
	}
	if _, _, code := command(t, "inbox", "done", sent.ID, "--url", c.url()); code != exitOK {
		t.Errorf("inbox done: exit code %d", code)
	}
	if out, _, _ := command(t, "messages", "show", sent.ID, "--url", c.url()); !strings.Contains(out, "delivered") {
		t.Errorf("messages show: %s", out)
	}
}

// The story of examples/: the receiver is away, comes back, and has the
// message once.
func TestTheCableIsPulledAndPluggedInAgain(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.txt")
	write(t, secret, "c2VjcmV0IG9mIHR3byB0ZXN0IG5vZGVzIG9ubHk=\n")
	receiver := &child{t: t, address: freeAddress(t), data: filepath.Join(t.TempDir(), "data")}
	receiver.args = serveArgs(t, t.TempDir(), "warehouse", fmt.Sprintf(
		"node: {id: warehouse}\nlisten: %s\ndata: %s\nreceive:\n  secrets: {shop: {file: %s}}\n  endpoints: {StockCounted: {keep: true}}\n", receiver.address, receiver.data, secret))
	shop := serving(t, fmt.Sprintf(
		"node: {id: shop}\ndestinations:\n  warehouse: {url: \"%s\", secret: {file: %s}, retry: {policy: fixed, interval: 50ms}}\n", receiver.url(), secret))
	for n := range 20 {
		if _, stderr, code := command(t, "send", "warehouse", "StockCounted", fmt.Sprintf(`{"n": %d}`, n), "--id", fmt.Sprintf("count-%d", n), "--url", shop.url()); code != exitOK {
			t.Fatalf("send: exit code %d: %s", code, stderr)
		}
	}
	out, _, _ := command(t, "messages", "ls", "--json", "--url", shop.url()) // some may be tried at this moment
	if !strings.Contains(out, "count-19") || strings.Contains(out, `"delivered"`) {
		t.Errorf("messages: %s", out)
	}
	receiver.start()
	t.Cleanup(receiver.kill)
	receiver.ready()
	var stats struct{ Pending, Failed int }
	eventually(t, "nothing waits any more", func() bool {
		return getJSON(shop.url()+"/_rf/outbox/stats", &stats) == nil && stats.Pending == 0
	})
	out, _, _ = command(t, "inbox", "ls", "--json", "--limit", "100", "--url", receiver.url())
	for n := range 20 {
		if got := strings.Count(out, fmt.Sprintf(`"count-%d"`, n)); got != 1 {
			t.Errorf("message count-%d is in the inbox %d times", n, got)
		}
	}
}

// The examples that the guides point to are configurations that load.
func TestExamplesLoad(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shop.yaml", "warehouse.yaml"} {
		if _, stderr, code := command(t, "config", "check", "--config", filepath.Join("..", "..", "examples", name)); code != exitOK {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBadStarts(t *testing.T) {
	t.Parallel()
	running := serving(t, "")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	t.Run("port in use", func(t *testing.T) {
		t.Parallel()
		refused(t, exitFailure, []string{running.address, "another program uses this address", "--listen"},
			"serve", "--listen", running.address, "--data", t.TempDir())
	})
	t.Run("data of another process", func(t *testing.T) {
		t.Parallel()
		refused(t, exitConflict, []string{"owned by another process", fmt.Sprintf("process %d", running.cmd.Process.Pid), "choose another data folder"},
			"serve", "--listen", "127.0.0.1:0", "--data", running.data)
	})
	t.Run("unknown key", func(t *testing.T) {
		t.Parallel()
		path := file("unknown.yaml", "node: {id: a}\nlisen: 127.0.0.1:0\n")
		refused(t, exitUsage, []string{path + ":2", `"lisen"`, `did you mean "listen"`}, "serve", "--config", path)
	})
	t.Run("impossible combination", func(t *testing.T) {
		t.Parallel()
		path := file("both.yaml", "receive:\n  endpoints:\n    A: {keep: true, forward: \"http://127.0.0.1:1/\"}\n")
		refused(t, exitUsage, []string{"receive.endpoints.A"}, "serve", "--config", path)
	})
	t.Run("unreadable secret", func(t *testing.T) {
		t.Parallel()
		path := file("secret.yaml", "destinations:\n  a: {url: \"http://127.0.0.1:1\", secret: {file: nowhere.txt}}\n")
		refused(t, exitUsage, []string{"destinations.a.secret", "nowhere.txt"}, "serve", "--config", path)
	})
	t.Run("reachable without protection", func(t *testing.T) {
		t.Parallel()
		refused(t, exitUsage, []string{"0.0.0.0:0", "tls.cert"}, "serve", "--listen", "0.0.0.0:0", "--data", t.TempDir())
	})
	t.Run("database of a newer version", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		path := filepath.Join(data, "holdfast.db")
		newerDatabase(t, path)
		before := fingerprint(t, path)
		refused(t, exitUsage, []string{"newer release", path}, "serve", "--listen", "127.0.0.1:0", "--data", data)
		if fingerprint(t, path) != before {
			t.Error("the refused database was changed")
		}
	})
	t.Run("no database at all", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		write(t, filepath.Join(data, "holdfast.db"), strings.Repeat("this is no database ", 500))
		refused(t, exitUsage, []string{"damaged"}, "serve", "--listen", "127.0.0.1:0", "--data", data)
	})
}

func newerDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{
		`CREATE TABLE hf_meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID`,
		`INSERT INTO hf_meta VALUES ('schema', 9999)`,
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

func fingerprint(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// Requests that cannot be taken, against a real node: each answer names the
// field and what to do, and nothing is kept.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	c := serving(t, "limits: {payload: 2KiB}\n")
	post := func(body string) (int, string) {
		resp, err := http.Post(c.url()+"/v1/messages", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if status, body := post(`{"id": "taken", "destination": "self", "endpoint": "E", "payload": 1}`); status != http.StatusAccepted {
		t.Fatalf("got %d %s", status, body)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		wants  []string
	}{
		"payload not JSON":    {`{"destination": "self", "endpoint": "E", "payload": {"n": }}`, 400, []string{"problem"}},
		"payload too large":   {`{"destination": "self", "endpoint": "E", "payload": "` + strings.Repeat("x", 3000) + `"}`, 413, []string{"2", "payload"}},
		"unknown destination": {`{"destination": "moon", "endpoint": "E"}`, 422, []string{"moon", "self"}},
		"id too long":         {`{"id": "` + strings.Repeat("i", 129) + `", "destination": "self", "endpoint": "E"}`, 422, []string{"id", "128"}},
		"unknown field":       {`{"destination": "self", "endpoint": "E", "paylod": 1}`, 422, []string{"paylod"}},
		"other content":       {`{"id": "taken", "destination": "self", "endpoint": "E", "payload": 2}`, 409, []string{"taken"}},
		"same content":        {`{"id": "taken", "destination": "self", "endpoint": "E", "payload": 1}`, 200, []string{`"duplicate":true`}},
	} {
		status, body := post(c.body)
		if status != c.status {
			t.Errorf("%s: got %d %s, want %d", name, status, body, c.status)
		}
		for _, want := range c.wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: answered %s, want it to hold %q", name, body, want)
			}
		}
	}
	out, _, _ := command(t, "messages", "ls", "--json", "--url", c.url())
	if n := strings.Count(out, `"destination"`); n != 1 {
		t.Errorf("%d messages are kept, want 1: %s", n, out)
	}
}

// Design 16: the first token is made before the node runs; a token that is
// given names the actor.
func TestTheFirstToken(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	secret, stderr, code := command(t, "tokens", "create", "first", "--role", "admin", "--data", data)
	if code != exitOK || !strings.HasPrefix(secret, "hf_") {
		t.Fatalf("exit code %d, %q, %q", code, secret, stderr)
	}
	if _, stderr, code := command(t, "tokens", "create", "first", "--role", "read", "--data", data); code != exitConflict || !strings.Contains(stderr, "first") {
		t.Errorf("the same name again: exit code %d, %q", code, stderr)
	}
	if out, _, _ := command(t, "tokens", "ls", "--data", data); !strings.Contains(out, "first") || strings.Contains(out, "hf_") {
		t.Errorf("tokens ls: %q", out)
	}
	refused(t, exitUsage, []string{"--url and a store exclude each other"}, "tokens", "ls", "--data", data, "--url", "http://127.0.0.1:1")
	c := &child{t: t, address: freeAddress(t), data: data}
	c.args = []string{"holdfast", "serve", "--listen", c.address, "--data", c.data}
	c.start()
	t.Cleanup(c.kill)
	c.ready()
	if out, stderr, code := command(t, "tokens", "ls", "--url", c.url(), "--token", strings.TrimSpace(secret)); code != exitOK || !strings.Contains(out, "admin") {
		t.Errorf("with the token: exit code %d, %q, %q", code, out, stderr)
	}
	refused(t, exitUsage, []string{"mistyped"}, "messages", "ls", "--url", c.url(), "--token", "hf_wrong")
	refused(t, exitConflict, []string{"owned by another process"}, "tokens", "ls", "--data", data)
}

// OI-11: a node on a Unix socket, asked over it, killed and started again on
// the file that it left behind.
func TestANodeOnAUnixSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hf") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	url := "unix://" + filepath.Join(dir, "api.sock")
	c := &child{t: t, data: filepath.Join(t.TempDir(), "data")}
	c.args = []string{"holdfast", "serve", "--listen", url, "--data", c.data}
	send := func(id string) (code int) {
		_, _, code = command(t, "send", "self", "Hello", "--id", id, "--url", url)
		return code
	}
	c.start()
	t.Cleanup(c.kill)
	eventually(t, "the node takes a message", func() bool { return send("first") == exitOK })
	for _, want := range []string{"listening   " + url, "curl -s --unix-socket '" + filepath.Join(dir, "api.sock") + "' http://localhost/v1/messages -H"} {
		if !strings.Contains(c.tail(), want) {
			t.Errorf("it said\n%s\nwant it to hold %q", c.tail(), want)
		}
	}
	refused(t, exitFailure, []string{"another program listens there"}, "serve", "--listen", url, "--data", filepath.Join(t.TempDir(), "other"))
	c.kill()
	if code := send("second"); code != exitUnreachable {
		t.Errorf("with nobody behind the file: exit code %d, want %d", code, exitUnreachable)
	}
	c.start()
	eventually(t, "the node takes a message again", func() bool { return send("second") == exitOK })
	eventually(t, "both are in the inbox", func() bool {
		out, _, _ := command(t, "inbox", "ls", "--json", "--url", url)
		return strings.Contains(out, `"first"`) && strings.Contains(out, `"second"`)
	})
	if err := c.end(); err != nil {
		t.Errorf("stop: %v\n%s", err, c.tail())
	}
	if _, err := os.Stat(filepath.Join(dir, "api.sock")); !os.IsNotExist(err) {
		t.Errorf("after the stop: got %v, want no file", err)
	}
}
