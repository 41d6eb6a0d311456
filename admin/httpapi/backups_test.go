package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

func backing(err error) func(*httpapi.Server) {
	return func(s *httpapi.Server) {
		s.Backup = func(_ context.Context, folder string) (string, int64, error) { return folder + "/x.db", 4096, err }
	}
}

// OI-14: a backup by the API, and why there is none.
func TestOI14BackupByTheAPI(t *testing.T) {
	t.Parallel()
	post := func(body string) call { return call{method: "POST", path: "/v1/backups", body: body} }
	f := serve(t, backing(nil))
	if got := ok[api.Backup](t, f, post(`{"folder":"/mnt"}`)); got != (api.Backup{Path: "/mnt/x.db", Size: 4096}) {
		t.Errorf("got %+v", got)
	}
	bad := fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{Field: "folder", Value: "/mnt", Problem: "does not exist"})
	for name, c := range map[string]struct {
		edit   func(*httpapi.Server)
		body   string
		status int
		text   string
	}{
		"no folder":         {backing(nil), `{}`, 422, "folder is missing"},
		"an unknown field":  {backing(nil), `{"folder":"/mnt","file":"x"}`, 422, "file"},
		"a bad folder":      {backing(bad), `{"folder":"/mnt"}`, 422, `folder "/mnt" does not exist`},
		"no room":           {backing(fmt.Errorf("%w: the copy needs 4 KiB", holdfast.ErrDiskFull)), `{"folder":"/mnt"}`, 507, "the copy needs 4 KiB"},
		"another's file":    {backing(fmt.Errorf("%w: by its own means", errors.ErrUnsupported)), `{"folder":"/mnt"}`, 501, "by its own means"},
		"closed":            {backing(holdfast.ErrClosed), `{"folder":"/mnt"}`, 503, "the store is closed"},
		"something else":    {backing(errors.New("secret path")), `{"folder":"/mnt"}`, 500, "its log says why"},
		"a node that can't": {func(*httpapi.Server) {}, `{"folder":"/mnt"}`, 501, "cannot copy its database"},
	} {
		p := problem(t, serve(t, c.edit).do(t, post(c.body)))
		if p.Status != c.status || !strings.Contains(p.Detail, c.text) {
			t.Errorf("%s: got %d %q, want %d with %q", name, p.Status, p.Detail, c.status, c.text)
		}
	}
}

// A backup may take longer than the server gives other answers.
func TestOI14ABackupMayTakeLong(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) {
		s.Backup = func(ctx context.Context, folder string) (string, int64, error) {
			select { // much longer than the deadline below
			case <-ctx.Done():
				return "", 0, ctx.Err()
			case <-time.After(3 * time.Second):
				return folder, 1, nil
			}
		}
	})
	server := httptest.NewUnstartedServer(f.handler)
	// A busy machine still asks in time.
	server.Config.WriteTimeout, server.Config.ReadTimeout = time.Second, time.Second
	server.Start()
	defer server.Close()
	c, err := client.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Backup(t.Context(), "/mnt"); err != nil || got.Path != "/mnt" {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Backup(ctx, "/mnt"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("given up: got %v", err)
	}
}
