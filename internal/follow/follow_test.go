package follow_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/follow"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// table is a journal in memory, where reads take no time.
type table struct {
	mu                   sync.Mutex
	entries, read, pages int
}

func (*table) Register(context.Context, holdfast.Follower) error { return nil }

func (s *table) Read(context.Context, string) (p follow.Page[int], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p.From = s.read; len(p.Entries) < min(s.entries-s.read, follow.Limit); {
		p.Entries = append(p.Entries, holdfast.Entry{Seq: int64(p.From + len(p.Entries) + 1)})
		p.Ends = append(p.Ends, p.From+len(p.Entries))
	}
	return p, nil
}

func (s *table) Write(_ context.Context, _ string, _, to int, _ []holdfast.Row) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = to
	s.pages++
	return true, nil
}

func (s *table) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries += n
}

// is returns how many entries are read, in how many pages.
func (s *table) is() (read, pages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, s.pages
}

// While entries keep coming a page has many. The first one, and those of a full page, do not wait.
func TestAPageIsWorthItsTransaction(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		s, wake, ended := &table{}, make(chan struct{}, 1), make(chan error, 1)
		go func() {
			ended <- follow.Run(ctx, s, holdfast.Follower{Name: "f"}, wake, func(context.Context, []holdfast.Entry) ([]holdfast.Row, error) {
				return nil, nil
			})
		}()
		add := func(n int) {
			s.add(n)
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		time.Sleep(100 * time.Millisecond)
		add(1)
		time.Sleep(time.Microsecond)
		if read, _ := s.is(); read != 1 {
			t.Error("the first entry waits")
		}
		for range 200 {
			time.Sleep(time.Millisecond)
			add(1)
		}
		time.Sleep(50 * time.Millisecond)
		if read, pages := s.is(); read != 201 || pages > 13 {
			t.Errorf("%d entries in %d pages, want 201 in at most 13 pages", read, pages)
		}
		add(10 * follow.Limit)
		time.Sleep(21 * time.Millisecond)
		if read, _ := s.is(); read != 201+10*follow.Limit {
			t.Errorf("%d entries are read: full pages wait", read)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
