package site

import (
	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// Unserved are the destinations that have due messages and no deliverer here, by
// name, as of the last look; for a program's own health. Their rows stay pending
// (SF-11). It asks no database.
func (s *Site) Unserved() (names []string) {
	for _, l := range s.Lanes() {
		if l.Standstill != nil && l.Standstill.Cause == holdfast.CauseNoRoute {
			names = append(names, l.Destination)
		}
	}
	return names
}

func (s *Site) category(destination string) holdfast.Category {
	if destination == notify.Central {
		return holdfast.CategoryNotification
	}
	return s.conf.Destinations[destination].Category
}
