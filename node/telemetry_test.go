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
	"github.com/holdfast-mq/holdfast/config"
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

// A site that calls itself something else than the name under which it was enrolled has its audit log at central,
// under that name. So has one that began its log before it was enrolled.
func TestCentralKnowsASiteByItsCredential(t *testing.T) {
	t.Parallel()
	central := serve(t, parse(t, "role: central"))
	_, token := ask(t, "POST", central+"/v1/sites", `{"name":"plant-7"}`)
	of := parse(t, fmt.Sprintf("role: site\nnode: {source: box}\ncentral: {url: %q}\n", central))
	site := serve(t, of)
	if status, text := ask(t, "POST", site+"/v1/destinations/central/pause", ""); status != 200 {
		t.Fatal(status, text)
	}
	if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: central, Token: between(token, `"token":"`, `"`), File: of.CredentialFile()}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "central has what was done at the site", func() bool {
		_, text := ask(t, "GET", central+"/v1/audit?site=plant-7&kind=ApiCall", "")
		return strings.Contains(text, `"operation":"pause-destination"`) && strings.Contains(text, `"site":"plant-7"`)
	})
	if _, text := ask(t, "GET", central+"/v1/audit?site=box", ""); !strings.Contains(text, `"records":[]`) {
		t.Errorf("a site that nobody has added: %s", text)
	}
	const held = "; checkpoints of it are held by 1 other node"
	says := func(url, part string, want bool) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%q in its health: %v", part, want), func() bool {
			_, text := ask(t, "GET", url+"/_rf/health", "")
			return strings.Contains(text, part) == want
		})
	}
	for _, url := range []string{site, central} { // there is no checkpoint until one is asked for
		if status, text := ask(t, "POST", url+"/v1/audit/checkpoint", ""); status != 200 {
			t.Fatal(status, text)
		}
	}
	says(central, "no checkpoint of its log", false)
	says(site, held, true)
	says(central, held, true)
	if status, text := ask(t, "DELETE", central+"/v1/sites/plant-7", ""); status >= 300 {
		t.Fatal(status, text)
	}
	says(central, held, false)
}

// A site and its central keep one another's checkpoints. A site whose log was cut, and all its checkpoints with it, learns from
// central what it had.
func TestSiteAndCentralVouchForOneAnother(t *testing.T) {
	t.Parallel()
	hub := parse(t, "role: central")
	hub.Node.ID = "hub"
	token := ""
	t.Run("first run", func(t *testing.T) { _, token = ask(t, "POST", serve(t, hub)+"/v1/sites", `{"name":"here"}`) })
	var of *config.Config
	whole := t // its folders outlast a run
	run := func(t *testing.T) (central, site string) {
		t.Helper()
		central = serve(t, hub)
		if of == nil {
			of = parse(whole, fmt.Sprintf("role: site\ncentral: {url: %q}\n", central))
			if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: central, Token: between(token, `"token":"`, `"`), File: of.CredentialFile()}); err != nil {
				t.Fatal(err)
			}
		}
		of.Central.URL = central
		site = serve(t, of)
		if status, text := ask(t, "POST", site+"/v1/destinations/central/pause", ""); status != 200 {
			t.Fatal(status, text)
		}
		return central, site
	}
	t.Run("signed at the stop", func(t *testing.T) {
		run(t)
		waittest.Until(t, "the call is recorded", func() bool {
			return stored(t, of.Data, "SELECT count(*) FROM hf_audit WHERE kind = 'ApiCall'") > 0
		})
	})
	says := func(t *testing.T, url, part string) {
		t.Helper()
		waittest.Until(t, part, func() bool { _, text := ask(t, "GET", url+"/_rf/health", ""); return strings.Contains(text, part) })
	}
	t.Run("they exchange", func(t *testing.T) {
		central, site := run(t)
		says(t, site, "; checkpoints of it are held by 1 other node")
		says(t, central, "; checkpoints of it are held by 1 other node")
		for folder, origin := range map[string]string{hub.Data: "holdfast/here/%", of.Data: "holdfast/hub/%"} {
			if n := stored(t, folder, "SELECT count(*) FROM hf_audit_checkpoint WHERE origin LIKE '"+origin+"'"); n == 0 {
				t.Errorf("there is no checkpoint of %s", origin)
			}
		}
	})
	for _, s := range []string{
		"DELETE FROM hf_audit_checkpoint", "UPDATE hf_audit_log SET cut = 100", "DELETE FROM hf_audit WHERE seq > 1",
		"UPDATE hf_audit_log SET cut = 0, size = 1, head = (SELECT hash FROM hf_audit)", "UPDATE hf_audit_tile SET hashes = substr(hashes, 1, 32)",
	} {
		change(t, "sqlite", "file:"+filepath.Join(of.Data, "holdfast.db"), s)
	}
	if r, err := node.VerifyAudit(t.Context(), of, nil, "", ""); err != nil || r.Status == audit.Broken {
		t.Fatalf("%+v, %v: the site can see the cut by itself", r, err)
	}
	t.Run("the site is told", func(t *testing.T) {
		_, site := run(t)
		says(t, site, "central holds")
	})
	if r, err := node.VerifyAudit(context.WithoutCancel(t.Context()), of, nil, "", ""); err != nil || r.Status != audit.Broken {
		t.Errorf("%+v, %v", r, err)
	}
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
