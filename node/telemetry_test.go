package node_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/node"
)

// Central gets the audit log of a site, and its own log says what it has taken. So a copy that somebody has
// done away with as a whole, with all signs of it, is missed.
func TestCentralMissesACopyThatWasDoneAwayWith(t *testing.T) {
	t.Parallel()
	conf := parse(t, "role: central")
	conf.Node.ID = "hub"
	t.Run("both run", func(t *testing.T) {
		central := serve(t, conf)
		_, token := ask(t, "POST", central+"/v1/sites", `{"name":"here"}`)
		of := parse(t, fmt.Sprintf("role: site\ncentral: {url: %q}\n", central))
		if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: central, Token: between(token, `"token":"`, `"`), File: of.CredentialFile()}); err != nil {
			t.Fatal(err)
		}
		site := serve(t, of)
		if status, text := ask(t, "POST", site+"/v1/destinations/central/pause", ""); status != 200 {
			t.Fatal(status, text)
		}
		waittest.Until(t, "central's log tells of the copy", func() bool {
			return stored(t, conf.Data, "SELECT count(*) FROM hf_audit WHERE log = 1 AND kind = 'Copied' AND target LIKE 'holdfast/here/here/%'") > 0 &&
				stored(t, conf.Data, "SELECT count(*) FROM hf_audit WHERE log <> 1 AND kind = 'ApiCall'") > 0
		})
		// AU-07: each end has the numbers of the site.
		for _, url := range []string{central, site} {
			waittest.Until(t, "nothing waits for central", func() bool {
				_, text := ask(t, "GET", url+"/v1/audit/kpis/sites", "")
				return strings.Contains(text, `"site":"here","records":`) && !strings.Contains(text, `"records":0`) && strings.Contains(text, `"unsent":0,"unsentSeconds":0}`)
			})
		}
		if _, text := ask(t, "GET", site+"/metrics", ""); !strings.Contains(text, `holdfast_telemetry_backlog{site="here"} 0`) || !strings.Contains(text, `holdfast_telemetry_oldest_seconds{site="here"} 0`) {
			t.Error("the site's metrics do not say what waits for central")
		}
	})
	verify := func(want audit.Verdict, faults int) {
		t.Helper()
		r, err := node.VerifyAudit(context.WithoutCancel(t.Context()), conf, nil, "", "")
		found := 0
		for _, l := range r.Logs {
			if l.Fault != "" {
				found++
			}
		}
		if err != nil || r.Status != want || len(r.Logs) != 2 || found != faults {
			t.Fatalf("%+v, %v, want %s", r, err, want)
		}
	}
	verify(audit.Intact, 0)
	db, err := sql.Open("sqlite", filepath.Join(conf.Data, "holdfast.db"))
	if err == nil {
		_, err = db.ExecContext(t.Context(), "DROP TRIGGER hf_audit_kept; DELETE FROM hf_audit WHERE log <> 1; DELETE FROM hf_audit_log WHERE log <> 1")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	verify(audit.Broken, 1)
}

// stored returns a number from the store of a node that may run.
func stored(t *testing.T, folder, query string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "holdfast.db")+"?mode=ro")
	if err == nil {
		err = errors.Join(db.QueryRowContext(t.Context(), query).Scan(&n), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}
