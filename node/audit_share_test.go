package node_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link"
)

// What central erases of its copies a site erases, too, once it is back; what a site erases goes at central. Each says who
// has not confirmed it yet, also after a restart.
func TestAnErasureReachesTheOtherEnd(t *testing.T) {
	t.Parallel()
	hub := parse(t, "role: central")
	hub.Node.ID = "hub"
	var of *config.Config
	whole := t // its folders outlast a run
	run := func(t *testing.T, alone bool) (central, site string) {
		t.Helper()
		central = serve(t, hub)
		if of == nil {
			_, token := ask(t, "POST", central+"/v1/sites", `{"name":"here"}`)
			of = parse(whole, fmt.Sprintf("role: site\ncentral: {url: %q}\n", central))
			if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: central, Token: between(token, `"token":"`, `"`), File: of.CredentialFile()}); err != nil {
				t.Fatal(err)
			}
		}
		if of.Central.URL = central; !alone {
			site = serve(t, of)
		}
		return central, site
	}
	const values = `SELECT count(*) FROM hf_audit_value AS v JOIN hf_audit_log AS l ON l.log = v.log WHERE l.origin LIKE 'holdfast/here/%' AND v.value LIKE `
	has := func(t *testing.T, c *config.Config, person string, want int) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("%s has %d values that name %s", c.Role, want, person), func() bool {
			return stored(t, c.Data, values+"'%"+person+"%'") == want
		})
	}
	erase := func(t *testing.T, url, person, want string) {
		t.Helper()
		code, text := ask(t, "POST", url+"/v1/audit/erasures", fmt.Sprintf(`{"person":%q,"reason":"request"}`, person))
		if code != 200 || !strings.Contains(text, want) {
			t.Fatalf("%d %s, want %s", code, text, want)
		}
	}
	confirmed := func(t *testing.T, url string) {
		t.Helper()
		waittest.Until(t, "it is confirmed", func() bool {
			code, text := ask(t, "POST", url+"/v1/audit/erasures", `{"person":"nobody@example.org","reason":"look","dryRun":true}`)
			return code == 200 && !strings.Contains(text, "unconfirmed")
		})
	}
	t.Run("both have the values", func(t *testing.T) {
		_, site := run(t, false)
		for _, person := range []string{"ann", "ben"} {
			if code, text := ask(t, "GET", site+"/v1/audit?target="+person+"@example.org", ""); code != 200 {
				t.Fatal(code, text)
			}
		}
		has(t, hub, "ann@", 1)
		has(t, hub, "ben@", 1)
	})
	t.Run("the site is away", func(t *testing.T) {
		central, _ := run(t, true)
		erase(t, central, "ann@example.org", `"values":1`)
		erase(t, central, "ann@example.org", `"unconfirmed":[{"site":"here","values":1,"since":"`)
	})
	change(t, "sqlite", "file:"+filepath.Join(hub.Data, "holdfast.db"), `UPDATE hf_audit_erasure SET since = since - 90000000000`)
	t.Run("health says so after a day", func(t *testing.T) {
		central, _ := run(t, true)
		waittest.Until(t, "health says it, and is well", func() bool {
			_, text := ask(t, "GET", central+"/_rf/health", "")
			return strings.Contains(text, `{"name":"erasures","status":"ok","detail":"erased here, not yet confirmed by here: 1 value since 20`)
		})
	})
	t.Run("it is back, and erases at home", func(t *testing.T) {
		central, site := run(t, false)
		has(t, of, "ann@", 0)
		confirmed(t, central)
		erase(t, site, "ben@example.org", `"unconfirmed":[{"values":1,"since":"`)
		has(t, of, "ben@", 0)
	})
	t.Run("central learns of it", func(t *testing.T) {
		_, site := run(t, false)
		has(t, hub, "ben@", 0)
		confirmed(t, site)
	})
}
