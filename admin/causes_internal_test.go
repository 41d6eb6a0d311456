package admin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// parkedStore lists parked messages in pages of 4700, which do not fit the limit of what is looked at.
type parkedStore struct {
	holdfast.Outbox

	of   map[string]int
	text func(i int) string
}

var newest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *parkedStore) List(_ context.Context, q holdfast.Query) (p holdfast.Page, err error) {
	const size = 4700
	begin := 0
	if q.After != "" {
		if _, err := fmt.Sscan(q.After, &begin); err != nil {
			return p, err
		}
	}
	end := min(begin+size, s.of[q.Destination])
	for i := begin; i < end; i++ {
		q.Match(&holdfast.Record{
			Message: holdfast.Message{ID: "m", Destination: q.Destination}, State: holdfast.Parked, LastError: s.text(i), Created: newest.Add(-time.Duration(i) * time.Second),
		})
	}
	if end < s.of[q.Destination] {
		p.Next, p.LookedUntil = fmt.Sprint(end), newest.Add(-time.Duration(end)*time.Second)
	}
	return p, nil
}

func causesOf(t *testing.T, s *parkedStore, q CauseQuery, scope ...string) api.CauseList {
	t.Helper()
	may := api.Everything()
	may.Destinations = scope
	list, err := Messages{Service: &Service{Outbox: s}}.Causes(As(t.Context(), "ann", may), &q)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A list of causes that has not looked at all parked messages says so, and how far it looked.
func TestCausesTellWhatWasNotLookedAt(t *testing.T) {
	t.Parallel()
	s := &parkedStore{of: map[string]int{"a": mostLooked + 900, "b": 3000}, text: func(int) string { return "refused" }}
	got := causesOf(t, s, CauseQuery{Destination: "a", Within: "10s"})
	if want := newest.Add(-(mostLooked - 1) * time.Second); got.Looked != mostLooked || !got.More || !got.LookedUntil.Equal(want) {
		t.Errorf("looked at %d until %v, more %v; want %d until %v, and more", got.Looked, got.LookedUntil, got.More, mostLooked, want)
	}
	got = causesOf(t, s, CauseQuery{Within: "10s"}, "a", "b")
	if len(got.Causes) != 1 || !got.More || !got.LookedUntil.IsZero() {
		t.Errorf("of two destinations: got %+v, want more, and no time", got)
	}
	got = causesOf(t, s, CauseQuery{Within: "10s"}, "b")
	if len(got.Causes) != 1 || got.Looked != 3000 || got.More {
		t.Errorf("of one destination: got %+v, want all", got)
	}
	got = causesOf(t, s, CauseQuery{Within: "1ns"}, "b", "a")
	if got.Looked != 3000 || !got.More {
		t.Errorf("within no time: looked at %d, more %v; want the first page of the first destination only", got.Looked, got.More)
	}
}

// Messages of more causes than are listed are counted.
func TestCausesThatAreNotListedAreCounted(t *testing.T) {
	t.Parallel()
	const n = mostGroups + 1000
	letters := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j")
	s := &parkedStore{of: map[string]int{"a": n}, text: func(i int) string { return letters.Replace(fmt.Sprint(i)) }}
	got := causesOf(t, s, CauseQuery{Destination: "a", Within: "10s"})
	if len(got.Causes) != mostCauses || got.Looked != n || got.Others != n-mostCauses || got.More {
		t.Errorf("%d causes of %d, %d others, more %v; want %d others", len(got.Causes), got.Looked, got.Others, got.More, n-mostCauses)
	}
}
