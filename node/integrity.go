package node

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/brief"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// When the node reads the whole database file in the background.
const (
	integrityAfter = 5 * time.Minute // late enough that a check never delays a start
	integrityEvery = 24 * time.Hour
)

// checkIntegrity reads the file now and then, to find damage before the damaged message is needed.
func (f *file) checkIntegrity(ctx context.Context) error {
	for wait := integrityAfter; ; wait = integrityEvery {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
			f.db.Check(ctx)
		}
	}
}

// addIntegrity reports the last check.
func addIntegrity(add addCheck, c sqlite.IntegrityCheck) {
	detail := fmt.Sprintf("checked on %s: %s, %s, structure %s", c.At.UTC().Format(time.RFC3339),
		brief.Count(c.Messages, "message", "messages"), brief.Count(c.InboxIDs, "inbox id", "inbox ids"), c.Structure)
	switch {
	case c.Err != nil:
		add("integrity", api.Degraded, "the check did not end: "+c.Err.Error())
	case c.Broken > 0:
		add("integrity", api.Degraded, fmt.Sprintf("%s; damaged messages: %d", detail, c.Broken))
	default:
		add("integrity", api.OK, detail)
	}
}
