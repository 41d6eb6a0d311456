package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/demo"
)

// fake is the first argument of this test binary where it stands in for a
// node; the second one says how it lies.
const fake = "stand-in"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == fake {
		if err := standIn(os.Args[2], os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// standIn is a node that keeps nothing: it accepts a message when it has been
// delivered, and calls the program.
func standIn(mode, config string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if mode == "die" {
		return errors.New("no mood")
	}
	fmt.Printf("  listening   http://%s\n", l.Addr())
	to := string(regexp.MustCompile(`(?:url: |forward: )(http://[0-9.:]+)`).FindSubmatch(text)[1])
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/_rf/outbox/stats", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"pending":0}`) })
	mux.HandleFunc("/v1/messages", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID      string          `json:"id"`
			Payload json.RawMessage `json:"payload"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if mode != "drop" && !post(to+"/_rf/receive", "", fmt.Sprintf(`{"messageId":%q,"payload":%s}`, m.ID, m.Payload)) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("/_rf/receive", func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID      string          `json:"messageId"`
			Payload json.RawMessage `json:"payload"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		if mode != "forget" {
			post(to, m.ID, string(m.Payload))
		}
		if mode == "double" {
			post(to, m.ID+" again", string(m.Payload))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"acknowledged":true}`)
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = l.Close()
	}()
	_ = http.Serve(l, mux)
	return nil
}

func post(url, key, body string) bool {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// run runs a demo of stand-ins.
func run(t *testing.T, mode string) (c *demo.Counts, said, dir string, err error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	dir = filepath.Join(t.TempDir(), "files")
	wait := 30 * time.Second
	if mode == "drop" {
		wait = 500 * time.Millisecond // nothing will come
	}
	c, err = demo.Run(t.Context(), demo.Options{
		Node: []string{program, fake, mode}, Length: time.Second, Rate: 100, Keep: dir, Wait: wait, Out: &out,
	})
	return c, out.String(), dir, err
}

// A demo that cannot come out badly shows nothing.
func TestNodesThatLieAreFoundOut(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"drop":   "accepted messages had no effect", // a sender that accepts and delivers nothing
		"forget": "accepted messages had no effect", // a receiver that acknowledges and does nothing
		"double": "messages took effect more than once",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c, said, _, err := run(t, mode)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got error %v, want %q; it said:\n%s", err, want, said)
			}
			if mode == "double" && c.Doubled == 0 || mode != "double" && c.Lost != c.Sent || c.Sent == 0 {
				t.Errorf("got %+v", c)
			}
			if strings.Contains(said, "each one arrived") || !strings.Contains(said, "The files are in ") {
				t.Errorf("it said:\n%s", said)
			}
		})
	}
}

func TestHonestStandInsPass(t *testing.T) {
	t.Parallel()
	c, said, dir, err := run(t, "honest")
	if err != nil || c.Sent == 0 || c.Sent != c.Effects || c.Lost != 0 || c.Kills != 3 || c.AcksLost == 0 || c.DuplicatesRefused == 0 {
		t.Fatalf("got %+v, %v; it said:\n%s", c, err, said)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "ledger.jsonl")); err != nil || strings.Count(string(text), `"repeat":false`) != c.Effects {
		t.Errorf("got a ledger with %d effects, %v; want %d", strings.Count(string(text), `"repeat":false`), err, c.Effects)
	}
}

func TestANodeThatDiesIsReported(t *testing.T) {
	t.Parallel()
	_, said, _, err := run(t, "die")
	if err == nil || !strings.Contains(err.Error(), "the receiver ended by itself, exit status 1\nno mood") {
		t.Errorf("got %v; it said:\n%s", err, said)
	}
}

func TestAFolderInUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := demo.Run(t.Context(), demo.Options{Keep: dir}); !errors.Is(err, demo.ErrFolder) || !strings.Contains(err.Error(), "mine") {
		t.Errorf("got %v, want ErrFolder with what is there", err)
	}
}
