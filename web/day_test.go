package web_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/minutes"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/web"
)

// The figures of the overview have lines of what the node kept of the last day.
func TestTheOverviewShowsTheLastDay(t *testing.T) {
	t.Parallel()
	s := serve(t, api.Everything(), func(_ *web.Settings, s *admin.Service) {
		kept := nodestore.New(s.Outbox.(*sqlite.DB), nil).Minutes //nolint:forcetypeassert // serve makes it
		s.Minutes = kept
		for i := range 3 {
			m := minutes.Minute{At: time.Now().Add(-time.Duration(i+1) * time.Hour), Node: "a", Took: time.Minute, Numbers: minutes.Numbers{Waiting: int64(40 + i), Received: 5}}
			if err := kept.KeepMinute(t.Context(), &m); err != nil {
				t.Fatal(err)
			}
		}
	})
	wants(t, body(t, s.get(t, "/ui/")), `aria-label="Waiting: last 40, at most 42"`, `aria-label="Received a minute: last 5, at most 5"`)
}
