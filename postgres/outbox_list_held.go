package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

// heldPage is how many rows are read at a time to find held messages.
const heldPage = 1000

// findHeld fills found with held messages: first pending, then parked ones, each in the order of
// their expiry. Messages that have expired by the clock, but had not before the leaps, are a range
// of the index that sweeps use. It returns the place after the page.
func (l *listing) findHeld(ctx context.Context, after string) (next string, err error) {
	guard, now := l.db.clock.guard, l.db.clock.seen()
	place := []int64{0, 0, 0} // index of the table, then expires and seq of the last row that was read
	if after != "" {
		if place, err = cursor.ParsePlace(after, len(place)); err != nil {
			return "", err
		}
	}
	if doubt, _ := guard.Doubt(now); doubt == 0 {
		return "", nil
	}
	tables := []struct {
		state holdfast.State
		find  string
	}{{holdfast.Pending, expiredQueued}, {holdfast.Parked, expiredParked}}
	for read := 0; place[0] < int64(len(tables)); place = []int64{place[0] + 1, 0, 0} {
		of := tables[place[0]]
		place[1] = max(place[1], now-guard.End(0, 0))
		for more := l.wants(of.state); more; {
			got := 0
			if err := l.db.read(ctx, of.find, []any{heldPage, place[1], place[2], now}, func(rows pgx.Rows) error {
				e, err := scanExpirable(rows)
				if got++; len(l.found) == l.limit {
					return err
				}
				place[1], place[2] = e.expires, e.seq
				if (l.lane == 0 || e.key.lane == l.lane) && guard.Judge(now, e.expires, e.lasts) == belief.Held {
					l.found = append(l.found, e.seq)
				}
				return err
			}); err != nil {
				return "", err
			}
			if read += got; len(l.found) == l.limit || got == heldPage && read >= looked {
				return cursor.FormatPlace(place...), nil
			}
			more = got == heldPage
		}
	}
	return "", nil
}
