package nodestore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/minutes"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	readMinutes = `SELECT minute, node, seconds, numbers FROM hf_minute WHERE minute >= $1 AND minute <= $2 ORDER BY minute, node`
	// A clock that was wrong has written minutes that have not come.
	oldMinutes = `SELECT minute, node, noted FROM hf_minute WHERE minute <= $1 ORDER BY minute, node LIMIT 100`
	farMinutes = `SELECT minute, node, noted FROM hf_minute WHERE minute > $1 ORDER BY minute, node LIMIT 100`
	dropMinute = `DELETE FROM hf_minute WHERE minute = $1 AND node = $2`
)

// Minutes keeps what nodes did in each minute.
type Minutes struct{ db side.Store }

var _ minutes.Store = (*Minutes)(nil)

// KeepMinute implements minutes.Store.
func (s *Minutes) KeepMinute(ctx context.Context, m *minutes.Minute) error {
	numbers, err := json.Marshal(m.Numbers)
	if err == nil {
		r := &rows.Minute{Minute: minuteOf(m.At), Node: m.Node, Noted: rows.Now, Seconds: int64(m.Took / time.Second), Numbers: string(numbers)}
		err = s.db.Change(ctx, side.Cost{}, func(tx side.Tx) error { return tx.Put(r) })
	}
	if err != nil {
		return fmt.Errorf("keep the counts of a minute: %w", err)
	}
	return nil
}

// Minutes implements minutes.Store.
func (s *Minutes) Minutes(ctx context.Context, since time.Time) (list []minutes.Minute, err error) {
	err = s.db.Read(ctx, readMinutes, []any{minuteOf(since.Add(time.Minute - 1)), minuteOf(time.Now())}, func(scan side.Scan) error {
		var m minutes.Minute
		var at, seconds int64
		var numbers string
		if err := scan(&at, &m.Node, &seconds, &numbers); err != nil {
			return err
		}
		if json.Unmarshal([]byte(numbers), &m.Numbers) != nil {
			return nil //nolint:nilerr // a damaged row is a gap
		}
		m.At, m.Took = time.Unix(at*60, 0).UTC(), time.Duration(seconds)*time.Second
		list = append(list, m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the counts of minutes: %w", err)
	}
	return list, nil
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// PurgeMinutes implements minutes.Store. Each call takes a bounded part.
func (s *Minutes) PurgeMinutes(ctx context.Context, keep time.Duration) error {
	type key struct {
		minute int64
		node   string
	}
	var old []key
	clock, err := s.db.Clock(ctx)
	for _, sql := range []string{oldMinutes, farMinutes} {
		if err != nil {
			break
		}
		err = s.db.Read(ctx, sql, []any{minuteOf(time.Now())}, func(scan side.Scan) error {
			var k key
			var noted int64
			err := scan(&k.minute, &k.node, &noted)
			if err == nil && clock.Judge(rows.Instant(noted+rows.Micros(keep)), keep) == belief.Over {
				old = append(old, k)
			}
			return err
		})
	}
	if err == nil && len(old) > 0 {
		err = s.db.Change(ctx, side.Cost{Rows: len(old)}, func(tx side.Tx) error {
			for _, k := range old {
				if _, err := tx.Exec(dropMinute, k.minute, k.node); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("purge the counts of minutes: %w", err)
	}
	return nil
}
