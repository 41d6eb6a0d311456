package sqlite_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	auditlog "github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// auditCalls appends calls of the API to the journal, and their records to the audit log.
func auditCalls(t *testing.T, db *sqlite.DB, n int) {
	t.Helper()
	log := &auditlog.Log{Store: nodestore.New(db, nil).Audit, Journal: db, Site: "site", Node: "node", Describe: func(_ context.Context, page []holdfast.Entry) (list []auditlog.Record, err error) {
		for i := range page {
			if e := &page[i]; e.Kind == holdfast.Called {
				list = append(list, auditlog.Record{ID: holdfast.NewID(), Occurred: e.At, Channel: auditlog.APIInbound, Kind: auditlog.APICall, Status: auditlog.Success, Site: "site", Node: "node"})
			}
		}
		return list, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- log.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	follows := func() (holdfast.FollowerInfo, bool) {
		list, err := db.Followers(t.Context())
		if err != nil || len(list) == 0 {
			return holdfast.FollowerInfo{}, false
		}
		return list[0], true
	}
	waittest.Until(t, "the journal is followed", func() bool { _, ok := follows(); return ok })
	for range n {
		if err := db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Actor: "anna"}); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "all is in the log", func() bool { i, ok := follows(); return ok && i.Unread.IsZero() })
}

// Whatever a damaged file has lost of the audit log, the node goes on: with a new log, whose first
// record says what is gone of the one before. Until salvage has ended, no log gets a number that an old one has.
func TestTheAuditLogGoesOnAfterADamage(t *testing.T) {
	t.Parallel()
	const before, after = 300, 5
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	auditCalls(t, db, before)
	shut(t, db)
	s := &specimen{files: map[string][]byte{"": contents(t, path)[0]}}
	pages := s.pagesOf(t)
	path = s.write(t, func(_ string, content []byte) []byte {
		headless(content)
		for _, page := range append(pages["hf_audit_tile"], pages["hf_audit"][1]) {
			clear(content[(page-1)*4096 : page*4096])
		}
		return content
	})
	p, release := &tap{}, make(chan struct{})
	p.set(func(sql string) error {
		if strings.HasPrefix(sql, "INSERT INTO hf_audit_log") && strings.Contains(sql, "EXISTS") {
			<-release
		}
		return nil
	}, nil)
	db = open(t, path, sqlite.Options{SalvageWait: time.Millisecond}.With(p.wrap))
	defer shut(t, db)
	a := nodestore.New(db, nil).Audit
	if _, err := a.OpenLog(t.Context(), "new", true); err == nil {
		t.Error("a log was opened while old ones were still salvaged")
	}
	close(release)
	waittest.Until(t, "the salvage has ended", func() bool { return !db.Recovering() })
	auditCalls(t, db, after)
	logs, err := a.Logs(t.Context())
	if err != nil || len(logs) != 2 || logs[0].Size != before+1 || logs[1].Size < after {
		t.Fatalf("logs %+v, %v", logs, err)
	}
	stands, first := int64(0), auditlog.Record{}
	for _, l := range logs {
		if err := a.Records(t.Context(), l.Log, 0, 1<<30, func(r *auditlog.Stored) (err error) {
			if l == logs[0] {
				stands++
			} else if r.Seq == 1 {
				first, err = auditlog.Read(r.Leaf, nil)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	var former auditlog.Former
	if err := json.Unmarshal(first.Extra, &former); err != nil {
		t.Fatal(err)
	}
	if lost := before + 1 - stands; stands == 0 || lost == 0 || former.Origin != logs[0].Origin || former.Lost != lost {
		t.Errorf("the new log says %+v; %d of the old one stand", former, stands)
	}
}
