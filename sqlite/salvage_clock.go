package sqlite

import (
	"errors"
	"log/slog"

	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// noted returns the clock with which the new file begins. The new file keeps the old scale and its
// leaps, since the salvaged instants are on that scale. If the damaged file's clock is unreadable,
// nobody knows how long the file was out of use. Then all time is doubted, so that messages that
// would end are held.
func (s *salvage) noted(c *conn) (n noted, err error) {
	old, err := sqlitefile.Open(s.file)
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	roots, err := rootsOf(old, c)
	if err != nil {
		return n, err
	}
	wall, _ := s.db.opts.clock()
	shows, guard := wall.UnixMicro(), belief.New(0)
	n, known := oldClock(old, roots)
	if known = known && guard.Load(n.leaps) == nil; !known {
		s.db.log.Error("what the damaged file knew of the clock is not readable: all time is doubted", slog.String("file", s.file))
		n, guard = noted{at: shows, wall: shows, high: shows}, belief.New(0)
		guard.Leap(shows, shows, false)
	} else {
		lead := n.at - n.wall
		for _, l := range guard.Leaps() {
			lead -= l.False
		}
		guard.Leap(n.at, lead, true) // the scale is ahead by time that nobody has seen pass
	}
	n.leaps = guard.Text()
	return n, nil
}

// oldClock reads what a damaged file says about the clock. No hash covers it: it is believed if it
// agrees with itself and with the newest message.
func oldClock(old *sqlitefile.File, roots map[string]uint32) (n noted, known bool) {
	meta := map[string]any{}
	old.Index(roots["hf_meta"], func(r sqlitefile.Row) {
		if len(r.Values) == 2 {
			meta[r.Text(0)] = r.Values[1]
		}
	})
	known = true
	for key, into := range map[string]*int64{metaClock: &n.at, metaWall: &n.wall, metaWallHigh: &n.high} {
		value, ok := meta[key].(int64)
		*into, known = value, known && ok && value > 0
	}
	leaps, ok := meta[metaLeaps].(string)
	n.leaps = leaps
	newest, _ := old.Find(roots["hf_message"], old.Last(roots["hf_message"]))
	return n, known && ok && n.wall <= n.high && newest.Int(6) <= n.at+micros(2*idleSave)
}
