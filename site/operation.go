package site

import (
	"context"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/track"
)

// Peer is the category of destinations that are nodes. Messages to them are no operations.
const Peer holdfast.Category = "peer"

// Status says what became of a call, from the site's own rows, also while all others are away (SF-22). An id
// that is not known, or not any more, is ErrNotFound: Config.Retention and Config.Tracking say how long that
// takes.
func (s *Site) Status(ctx context.Context, id holdfast.ID) (track.Operation, error) {
	return s.tracker.Status(ctx, id)
}

// Operations returns a page of the site's calls, newest first.
func (s *Site) Operations(ctx context.Context, f track.Filter) (track.Page, error) {
	return s.tracker.List(ctx, f)
}

// category returns the category of a destination, and whether what is sent there is a call. What was sent to
// a destination that is not known any more is one.
func (s *Site) category(destination string) (c holdfast.Category, tracked bool) {
	if d, known := s.conf.Destinations[destination]; known {
		return d.Category, d.Category != Peer
	}
	_, channel := notify.ChannelOf(destination)
	return "", !channel && !s.forwards(destination) && !strings.HasPrefix(destination, "$") // the library's own
}

// tracked returns the destinations of calls, with their categories.
func (c *Config) tracked() map[string]holdfast.Category {
	if c.Past == nil {
		return nil // nobody would see the records
	}
	all := map[string]holdfast.Category{}
	for name, d := range c.Destinations {
		if d.Category != Peer {
			all[name] = d.Category
		}
	}
	return all
}
