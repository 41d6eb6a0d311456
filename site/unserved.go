package site

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// How often rows are looked for that nothing delivers, and how often the same
// lane is warned of: a missing deliverer is one line, not one per row.
const (
	lookEvery = 10 * time.Second
	warnEvery = time.Minute
)

// watchUnserved warns of lanes that have waiting rows and no deliverer, at the
// start and as long as that lasts. Their rows stay pending (SF-11).
func (s *Site) watchUnserved(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	warned := map[string]time.Time{}
	for {
		for _, name := range s.Unserved() {
			if at, known := warned[name]; known && time.Since(at) < warnEvery {
				continue
			}
			warned[name] = time.Now()
			s.log.WarnContext(ctx, "no deliverer for a destination; its messages stay pending",
				slog.String("destination", name), slog.String("category", string(s.category(name))))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Unserved are the destinations that have waiting messages and no deliverer
// here, by name; for a program's own health. It asks no database.
func (s *Site) Unserved() (names []string) {
	for name, c := range s.conf.Store.Counts().Lanes {
		if _, served := s.dispatcher.Routes[name]; !served && c.Pending > 0 && !strings.HasPrefix(name, "$") { // $: the library's own
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Site) category(destination string) holdfast.Category {
	if destination == notify.Central {
		return holdfast.CategoryNotification
	}
	return s.conf.Destinations[destination].Category
}
