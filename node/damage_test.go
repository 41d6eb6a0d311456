package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func health(t *testing.T, url string) api.Health {
	t.Helper()
	r, err := http.Get(url + "/_rf/health")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var h api.Health
	if err := json.Unmarshal(text, &h); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return h
}

func check(h *api.Health, name string) *api.Check {
	for i := range h.Checks {
		if h.Checks[i].Name == name {
			return &h.Checks[i]
		}
	}
	return nil
}

// OI-12, damaged file: the node starts, delivers what was sound, and reports
// the damage until the file is moved away.
//
// Edge cases 16 and 20.
func TestOI12DamagedFile(t *testing.T) {
	t.Parallel()
	c := parse(t, "")
	path := filepath.Join(c.Data, "holdfast.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// A node without a configuration delivers to itself.
	if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: "m", Destination: "self", Endpoint: "Hello", Payload: []byte(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(make([]byte, 4096), 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, c)
	h := health(t, url)
	damage := check(&h, "damaged file")
	if h.Status != api.Degraded || damage == nil || !strings.Contains(damage.Detail, "salvaged: 1 messages") || !strings.Contains(damage.Detail, "move that file away") {
		t.Fatalf("health is %+v", h)
	}
	waittest.Until(t, "the message is delivered", func() bool { return health(t, url).Pending == 0 })
	list, err := sqlite.SetAside(c.Data)
	if err != nil || len(list) != 1 {
		t.Fatalf("set aside: %v, %v", list, err)
	}
	if err := os.Remove(list[0].File); err != nil {
		t.Fatal(err)
	}
	if h := health(t, url); check(&h, "damaged file") != nil {
		t.Errorf("acknowledged, and health is still %+v", h)
	}
}

// A database that is deleted under the node ends it, so that its supervisor
// starts it again.
func TestDatabaseDeletedUnderTheNode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let an open database be deleted")
	}
	c := parse(t, "")
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- node.Serve(context.Background(), c, node.Options{Ready: func(a string) { ready <- a }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(c.Data, "holdfast.db")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "deleted, moved or replaced") {
			t.Errorf("the node ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the node runs on without its file")
	}
}
