package node_test

import (
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// SF-12: a site keeps what it has forwarded for a central that may come back
// with less, unless its disk has no room for what is new.
func TestASiteHoldsWhatItHasForwarded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(folder, "holdfast.db"), sqlite.Options{Source: "plant-7"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	site, err := link.NewSite(link.SiteConfig{URL: "http://127.0.0.1:1", File: filepath.Join(folder, "credential"), Outbox: db})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	if held := node.Held(site, false); len(held) != 1 || held[link.Lane] < link.Window {
		t.Errorf("got %v, want a day and more of what goes to central", held)
	}
	if held := node.Held(site, true); len(held) != 0 {
		t.Errorf("on a full disk: got %v, want nothing held", held)
	}
}
