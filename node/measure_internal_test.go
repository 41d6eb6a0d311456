package node

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
)

// Health names the followers of the journal while all of them read, and else those that have stopped.
func TestHealthOfTheJournal(t *testing.T) {
	t.Parallel()
	slow, stuck := time.Now().Add(-time.Minute), time.Now().Add(-stuckAfter-time.Minute)
	for name, c := range map[string]struct {
		list []holdfast.FollowerInfo
		want []string
	}{
		"no follower":       {nil, nil},
		"all of them read":  {[]holdfast.FollowerInfo{{Name: "a"}, {Name: "b", Unread: slow}}, []string{"journal ok followed by a, b"}},
		"one of them hangs": {[]holdfast.FollowerInfo{{Name: "a"}, {Name: "b", Unread: stuck}}, []string{"journal degraded not read by b for 11m0s"}},
	} {
		var got []string
		journalHealth(c.list, func(name, status, detail string) {
			detail, _, _ = strings.Cut(detail, ": it is kept")
			got = append(got, name+" "+status+" "+detail)
		})
		if d := cmp.Diff(got, c.want); d != "" {
			t.Errorf("%s (-got +want):\n%s", name, d)
		}
	}
}
