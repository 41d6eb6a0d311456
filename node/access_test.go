package node_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/postgres"
)

// F1-21: a central that nobody has used yet does not start without a token with
// the role admin. Once sites are enrolled it does, says how one is made, and is
// degraded until there is one.
func TestSitesAreNotCutOffForALackOfTokens(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, c *config.Config) (more string, opened func() store){
		"file": func(t *testing.T, c *config.Config) (string, func() store) {
			t.Helper()
			return "holdfast tokens create NAME --role admin --data " + c.Data, func() store { return openFile(t, c) }
		},
		"database": func(t *testing.T, c *config.Config) (string, func() store) {
			t.Helper()
			dsn := pgtest.Shared(t).Database(t)
			var err error
			if c.Store, err = config.NewDatabase(dsn); err != nil {
				t.Fatal(err)
			}
			return "holdfast tokens create NAME --role admin --config FILE", func() store { return openDatabase(t, dsn) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCentral(t, "tokens: always\n")
			fix, opened := open(t, c.conf)
			foretold := func(want ...string) {
				t.Helper()
				for _, part := range want {
					if got := node.CheckAccess(t.Context(), c.conf); !strings.Contains(got, part) {
						t.Errorf("a check says %q, want %q", got, part)
					}
				}
			}
			foretold("a node does not start", fix)
			if err := c.run(t, "{}", func(string) {}); err == nil || !strings.Contains(err.Error(), fix) {
				t.Fatalf("a new central: got %v, want the way out", err)
			}
			reader := ""
			c.conf.Tokens = config.TokensNever
			if err := c.run(t, "{}", func(url string) {
				var made api.CreatedToken
				if _, answer := ask(t, "POST", url+"/v1/tokens", `{"name":"reader","role":"read"}`); json.Unmarshal([]byte(answer), &made) == nil {
					reader = made.Secret
				}
				if status, answer := ask(t, "POST", url+"/v1/tokens", `{"name":"visitor","role":"admin","for":"1h"}`); status != http.StatusCreated {
					t.Errorf("a token that ends: got %d %s", status, answer)
				}
			}); err != nil {
				t.Fatal(err)
			}
			c.conf.Tokens = config.TokensAlways
			if err := c.run(t, "{}", func(string) {}); err == nil || !strings.Contains(err.Error(), fix) {
				t.Errorf("with a reader's token: got %v, want the way out", err)
			}
			db := opened()
			enroll(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			foretold("sites and peers are served", fix)
			if err := c.run(t, "{}", func(url string) {
				if status, _ := ask(t, "GET", url+"/v1/sites", ""); status != http.StatusUnauthorized {
					t.Errorf("without a token: got %d", status)
				}
				waittest.Until(t, "health tells of it", func() bool {
					return strings.Contains(healthSeenBy(t, url, reader), `"status":"degraded","detail":"requests need a token`)
				})
			}); err != nil {
				t.Errorf("with a site: %v", err)
			}
			if log := c.log.String(); !strings.Contains(log, `level=ERROR msg="nobody can operate this node"`) || !strings.Contains(log, fix) {
				t.Errorf("the log has no way out:\n%s", log)
			}
			db = opened()
			if err := nodestore.New(db, nil).Sites.RevokeSite(t.Context(), "plant-7", ""); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			foretold("a node does not start")
			db = opened()
			if err := nodestore.New(db, nil).Tokens.CreateToken(t.Context(), "first", "admin", 0, [32]byte{1}, ""); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if got := node.CheckAccess(t.Context(), c.conf); got != "" {
				t.Errorf("with a token a check says %q", got)
			}
		})
	}
}

// F1-21: peers prove themselves as sites do.
func TestPeersAreNotCutOffForALackOfTokens(t *testing.T) {
	t.Parallel()
	c := parse(t, "tokens: always\nreceive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}")
	url := serve(t, c)
	if status, _ := ask(t, "GET", url+"/v1/inbox", ""); status != http.StatusUnauthorized {
		t.Errorf("got %d", status)
	}
}

// store is what these tests do to one while no node runs.
type store interface {
	side.Base
	holdfast.Enqueuer
	holdfast.Outbox
	holdfast.Journal

	io.Closer
}

func openFile(t *testing.T, c *config.Config) store {
	t.Helper()
	return open(t, c.Data)
}

func openDatabase(t *testing.T, dsn string) store {
	t.Helper()
	db, err := postgres.Open(t.Context(), dsn, postgres.Options{Source: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func enroll(t *testing.T, db side.Base) {
	t.Helper()
	if err := nodestore.New(db, nil).Sites.AddSite(t.Context(), "plant-7", [32]byte{2}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := nodestore.New(db, nil).Sites.EnrollSite(t.Context(), [32]byte{2}, [32]byte{3}); err != nil {
		t.Fatal(err)
	}
}

// healthSeenBy is what a node says of itself to who has a token.
func healthSeenBy(t *testing.T, url, token string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/_rf/health", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(fmt.Sprint(resp.Status, err))
	}
	return string(text)
}
