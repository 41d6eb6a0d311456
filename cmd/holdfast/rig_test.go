package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/porttest"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// libraryCommand is the name under which this test binary is a program that
// receives with the library: its effect is a row in the inbox's transaction.
const libraryCommand = "holdfast-test-library"

const rigSecret = "a secret that only the tests know"

// rig is a sender and two receivers, each a process of its own.
type rig struct{ sender, node, library *child }

func (r *rig) all() []*child { return []*child{r.sender, r.node, r.library} }

func newRig(t *testing.T, program string) *rig {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	write(t, secret, base64.StdEncoding.EncodeToString([]byte(rigSecret)))
	r := &rig{
		sender:  &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "sender")},
		node:    &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "node")},
		library: &child{t: t, address: freeAddress(t), data: filepath.Join(dir, "library.db")},
	}
	retry := "{policy: exponential, base: 20ms, cap: 200ms, jitter: 10ms, retries: 0}"
	r.sender.args = serveArgs(t, dir, "sender", fmt.Sprintf(`
node: {id: sender}
listen: %s
data: %s
log: {level: warn}
destinations:
  node: {url: "%s", secret: {file: %s}, timeout: 5s, retry: %s}
  library: {url: "%s", secret: {file: %s}, timeout: 5s, retry: %s}
`, r.sender.address, r.sender.data, r.node.url(), secret, retry, r.library.url(), secret, retry))
	r.node.args = serveArgs(t, dir, "node", fmt.Sprintf(`
node: {id: node}
listen: %s
data: %s
log: {level: error}
receive:
  secrets: {sender: {file: %s}}
  endpoints:
    Kept: {keep: true}
    Called: {forward: "%s"}
`, r.node.address, r.node.data, secret, program))
	r.library.args = []string{libraryCommand, r.library.address, r.library.data}
	for _, p := range r.all() {
		p.start()
		t.Cleanup(p.kill)
	}
	for _, p := range r.all() {
		p.ready()
	}
	return r
}

func serveArgs(t *testing.T, dir, name, config string) []string {
	t.Helper()
	path := filepath.Join(dir, name+".yaml")
	write(t, path, config)
	return []string{"holdfast", "serve", "--config", path}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freeAddress finds an address for a child.
func freeAddress(t *testing.T) string {
	t.Helper()
	port, err := porttest.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// stop ends the processes as an operator would, and wants no complaint.
func (r *rig) stop(t *testing.T) {
	t.Helper()
	for _, p := range r.all() {
		if err := p.end(); err != nil {
			t.Errorf("stop %s: %v\n%s", p.args[0], err, p.tail())
		}
	}
}

// child is a program that can be killed and started again.
type child struct {
	t       *testing.T
	args    []string
	address string
	data    string
	cmd     *exec.Cmd
	out     tailWriter
	reader  *os.File // instead of out; nil: out
	told    bool     // a test that fails tells what it has logged
}

func (p *child) url() string { return "http://" + p.address }

func (p *child) tail() string { return p.out.String() }

func (p *child) start() {
	p.t.Helper()
	path, err := exec.LookPath(p.args[0])
	if err != nil {
		p.t.Fatal(err)
	}
	if !p.told {
		p.told = true
		p.t.Cleanup(func() {
			if p.t.Failed() {
				p.t.Logf("%v, the end of its log:\n%s", p.args, p.tail())
			}
		})
	}
	p.cmd = exec.Command(path, p.args[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if p.reader != nil {
		p.cmd.Stdout, p.cmd.Stderr = p.reader, p.reader
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill is kill -9: nothing of the process runs any more.
func (p *child) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// end asks the process to stop and waits for it.
func (p *child) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := p.cmd.Wait()
	p.cmd = nil
	return err
}

// ready waits until the process has started, and answers.
func (p *child) ready() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if resp, err := http.Get(p.url() + "/readyz"); err == nil {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if !strings.HasPrefix(string(text), "starting") {
				return
			}
		}
		pause(ctx, 10*time.Millisecond)
	}
	p.t.Fatalf("%v does not answer\n%s", p.args, p.tail())
}

// libraryMain receives with the library and books each message in the
// transaction that remembers its id.
func libraryMain() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := runLibrary(ctx, os.Args[1], os.Args[2])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runLibrary(ctx context.Context, address, path string) error {
	db, err := sqlite.Open(ctx, path, sqlite.Options{Source: "library"})
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.Do(ctx, func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS effect (id TEXT NOT NULL)`)
		return err
	}); err != nil {
		return err
	}
	secret, err := wire.NewSecret([]byte(rigSecret))
	if err != nil {
		return err
	}
	handler, err := transport.NewServer(transport.ServerConfig{
		Receiver: bookkeeper{db.Inbox()},
		Peer:     func(string) (transport.Peer, bool) { return transport.Peer{Secrets: []*wire.Secret{secret}}, true },
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(wire.ReceivePath, handler)
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// bookkeeper is a Receiver whose handler writes one row per message.
type bookkeeper struct{ inbox *holdfast.Inbox[*sqlite.Tx] }

func (b bookkeeper) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	receipt, err := b.inbox.Process(ctx, m, func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
		_, err := tx.ExecContext(ctx, `INSERT INTO effect (id) VALUES (?1)`, string(m.ID))
		return []byte(`{"booked":true}`), err
	})
	return receipt, holdfast.ReceiveFailure(err)
}
