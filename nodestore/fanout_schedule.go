package nodestore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

// usualName is the name of the one row of hf_schedule, and the subject of its journal entries.
const usualName = "subscriptions"

// givenUp stands for a schedule that an operator has given up. The row stays: it has the version of that, and what waits
// may move.
const givenUp = "null"

const (
	usualNow  = `SELECT version, 0, 0, 0 FROM hf_schedule WHERE name = $1`
	readUsual = `SELECT schedule, former, version, actor, changed, waiting, rounds, moved, hf_now() - changed FROM hf_schedule WHERE name = $1`
	moveUsual = `UPDATE hf_schedule SET rounds = $4, moved = $5 WHERE name = '` + usualName + `' AND version = $1 AND rounds = $2 AND moved = $3`
)

// Usual implements fanout.UsualStore. In place of one that a damaged file has lost stands the default.
func (f *Fanout) Usual(ctx context.Context) (u fanout.Usual, err error) {
	err = f.db.Read(ctx, readUsual, []any{usualName}, func(scan side.Scan) error {
		var schedule, former string
		var changed, rounds, age int64
		err := scan(&schedule, &former, &u.Version, &u.Actor, &changed, &u.Waiting, &rounds, &u.Moved, &age)
		u.Changed, u.Rounds, u.Age = f.db.Time(rows.Instant(changed)), int(rounds), rows.Duration(age)
		if json.Unmarshal([]byte(former), &u.Former) != nil {
			u.Former = nil // what waits is moved later, and never sooner
		}
		if u.GivenUp = schedule == givenUp; u.GivenUp {
			return err
		}
		if json.Unmarshal([]byte(schedule), &u.Schedule) != nil || u.Schedule.Validate() != nil {
			u.Schedule, u.Rounds = fanout.DefaultSchedule(), 0
		}
		return err
	})
	if err != nil {
		return u, fmt.Errorf("read the usual schedule: %w", err)
	}
	return u, nil
}

// PutUsual implements fanout.UsualStore.
func (f *Fanout) PutUsual(ctx context.Context, u fanout.Usual, actor string) (version int64, err error) {
	schedule, former := []byte(givenUp), []byte(nil)
	if !u.GivenUp {
		if err = u.Schedule.Validate(); err == nil {
			schedule, err = json.Marshal(u.Schedule)
		}
	}
	if err == nil {
		former, err = json.Marshal(u.Former)
	}
	if err == nil {
		e := &holdfast.Entry{Kind: holdfast.SchedulePut, Subject: usualName, Code: "next", Detail: schedule, Actor: actor}
		if u.Waiting {
			e.Code = "waiting"
		}
		if u.GivenUp {
			e.Code, e.Detail = holdfast.ScheduleReset, fmt.Appendf(nil, `{"apply":%q}`, e.Code)
		}
		version, err = f.change(ctx, usualNow, usualName, u.Version, false, e, func(tx side.Tx, _ *fanoutRow, version int64) error {
			return tx.Put(&rows.Schedule{
				Name: usualName, Schedule: string(schedule), Former: string(former), Version: version, Actor: actor, Changed: rows.Now, Waiting: u.Waiting, Rounds: int64(u.Rounds),
			})
		})
	}
	if err != nil {
		return 0, fmt.Errorf("put the usual schedule: %w", err)
	}
	return version, nil
}

// MoveUsual implements fanout.UsualStore.
func (f *Fanout) MoveUsual(ctx context.Context, was *fanout.Usual, rounds int, moved string) error {
	err := f.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
		n, err := tx.Exec(moveUsual, was.Version, int64(was.Rounds), was.Moved, int64(rounds), moved)
		if err == nil && n == 0 {
			err = holdfast.ErrState
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("record how far retries are moved: %w", err)
	}
	return nil
}
