package doctor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/doctor"
	"github.com/holdfast-mq/holdfast/postgres"
)

// onServer is what a node finds whose PostgreSQL database has nothing wrong.
func onServer() *doctor.Findings {
	f := healthy()
	f.Data, f.Owner = "", doctor.OwnerFound{Err: errors.New("shared")}
	f.Folder, f.Sync, f.Disk = doctor.FolderFound{}, doctor.SyncFound{}, doctor.DiskFound{}
	f.Server = &doctor.ServerFound{
		Address: "postgres://holdfast:[secret]@db.example/holdfast?sslmode=verify-full", SSLMode: "verify-full", Remote: true,
		Inspection: postgres.Inspection{
			Schema: 1, Newest: 1, Nodes: []postgres.NodeInfo{{Name: "a", Left: time.Second}, {Name: "b", Left: -time.Second}},
			Server: postgres.ServerInfo{
				Version: "15.7", Address: "10.0.0.1:5432", Database: "holdfast", Role: "holdfast", Connections: 20, Most: 100,
				SynchronousCommit: "on", Fsync: true, FullPageWrites: true, ClockAhead: time.Second,
				Tables: []postgres.TableInfo{{Name: "hf_queue", Live: 10, Dead: 1000}},
			},
		},
	}
	return f
}

func TestServerIsJudged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *doctor.ServerFound)
		check  string
		status doctor.Status
		text   string
	}{
		"nothing wrong":      {func(*doctor.ServerFound) {}, "tables", doctor.OK, "schema 1"},
		"nodes":              {func(*doctor.ServerFound) {}, "nodes", doctor.OK, "1 alive"},
		"not reached":        {func(s *doctor.ServerFound) { s.Err = holdfast.ErrUnavailable }, "connection", doctor.Failing, "not available"},
		"nobody verifies":    {func(s *doctor.ServerFound) { s.SSLMode = "require" }, "connection", doctor.Warning, "who answers"},
		"a pooler":           {func(s *doctor.ServerFound) { s.Refused = fmt.Errorf("%w: it leads", postgres.ErrPooler) }, "connection", doctor.Failing, "it leads"},
		"a pooler that fits": {func(s *doctor.ServerFound) { s.Server.Pooled = true }, "pooler", doctor.OK, "keeps sessions"},
		"too old":            {func(s *doctor.ServerFound) { s.Refused = fmt.Errorf("%w: the server is 13", postgres.ErrTooOld) }, "version", doctor.Failing, "the server is 13"},
		"no fixes any more":  {func(s *doctor.ServerFound) { s.Server.Version = "13.2 (Debian)" }, "version", doctor.Warning, "since November 2025"},
		"a missing right":    {func(s *doctor.ServerFound) { s.Refused = fmt.Errorf("%w: GRANT it", postgres.ErrRights) }, "tables", doctor.Failing, "GRANT it"},
		"a newer schema":     {func(s *doctor.ServerFound) { s.Refused = postgres.ErrNewer }, "tables", doctor.Failing, "newer release"},
		"no tables":          {func(s *doctor.ServerFound) { s.Schema = 0 }, "tables", doctor.OK, "none yet"},
		"older tables":       {func(s *doctor.ServerFound) { s.Newest = 2 }, "tables", doctor.OK, "brings it to 2"},
		"no fsync":           {func(s *doctor.ServerFound) { s.Server.Fsync = false }, "commits", doctor.Failing, "fsync=off"},
		"no full pages":      {func(s *doctor.ServerFound) { s.Server.FullPageWrites = false }, "commits", doctor.Failing, "full_page_writes=off"},
		"no synced commits":  {func(s *doctor.ServerFound) { s.Server.SynchronousCommit = "off" }, "commits", doctor.Failing, "synchronous_commit=off"},
		"few connections":    {func(s *doctor.ServerFound) { s.Server.Connections = 95 }, "connections", doctor.Warning, "95 of 100"},
		"a clock behind":     {func(s *doctor.ServerFound) { s.Server.ClockAhead = -time.Minute }, "clock of the server", doctor.Warning, "behind"},
		"an old transaction": {func(s *doctor.ServerFound) {
			s.Server.Holders = []postgres.Holder{{Kind: "session", Who: "x", Age: time.Hour}}
		}, "oldest transaction", doctor.Warning, "1h0m0s"},
		"another history": {func(s *doctor.ServerFound) { // F1-125
			s.Gap = &postgres.Gap{Was: "timeline 1", Now: "timeline 2", From: time.Unix(1e9, 0)}
		}, "history", doctor.Warning, "between 2001-09-09T01:46:40Z and the end of the old history may be gone"},
		"dead rows": {func(s *doctor.ServerFound) { s.Server.Tables[0].Dead = 200_000 }, "dead rows", doctor.Warning, "200000"},
	} {
		f := onServer()
		c.change(f.Server)
		r := doctor.Judge(f)
		got := check(t, r, c.check)
		if got.Status != c.status || !strings.Contains(got.Detail, c.text) {
			t.Errorf("%s: got %+v, want %s with %q", name, got, c.status, c.text)
		}
		if c.status != doctor.OK && got.Hint == "" {
			t.Errorf("%s: no way out", name)
		}
		if text := r.String(); strings.Contains(text, "data folder") || strings.Contains(text, "sync speed") || strings.Contains(text, "ownership") || r.Store == "" {
			t.Errorf("%s: what belongs to a file is looked at:\n%s", name, text)
		}
		if address := check(t, r, "address"); address.Status != doctor.OK {
			t.Errorf("%s: got %+v", name, address)
		}
	}
}
