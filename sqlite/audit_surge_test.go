package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	auditlog "github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// The words of an audit surge, besides saidFailed.
const (
	saidCalled = "called" // an entry of the journal that is to be recorded: its writer, and how many that has written
	saidSigned = "signed" // a checkpoint, as a JSON string
)

// auditKept is how old records are that an audit surge purges, and auditLeft how many it leaves.
const auditKept, auditLeft = 50 * time.Millisecond, 300

// surgeLog returns the audit log of a store, with its key and its witness in the folder of the store.
func surgeLog(db *sqlite.DB, dir string) (*auditlog.Log, error) {
	key, err := auditlog.OpenKey(filepath.Join(dir, "audit.key"))
	return &auditlog.Log{
		Store: nodestore.New(db, nil).Audit, Journal: db, Site: "site", Node: "node", Key: key, Witness: auditlog.File(filepath.Join(dir, "witness")),
		Describe: func(_ context.Context, page []holdfast.Entry) (list []auditlog.Record, err error) {
			for i := range page {
				e := &page[i]
				list = append(list, auditlog.Record{
					ID: holdfast.ID(fmt.Sprint("call-", e.Seq)), Occurred: e.At, Channel: auditlog.APIInbound, Kind: auditlog.APICall, Status: auditlog.Success,
					Site: "site", Node: "node", Actor: e.Actor, Correlation: e.Subject, Target: e.Subject, Personal: []string{"target"},
				})
			}
			return list, nil
		},
	}, err
}

// auditSurge is a process that appends to an audit log, signs, changes the key and purges, all at once, until the power is gone: args are
// the path of its store and a prefix for its writers.
func auditSurge(args []string) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, args[0], sqlite.Options{Source: "test"})
	must(err)
	l, err := surgeLog(db, filepath.Dir(args[0]))
	must(err)
	l.Held = func(string) int64 {
		logs, err := l.Store.Logs(ctx)
		must(err)
		return logs[len(logs)-1].Size - auditLeft
	}
	s := &surging{db: db, prefix: args[1]}
	var all sync.WaitGroup
	all.Go(func() { say(saidFailed, l.Run(ctx)) })
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C { // what was appended before is kept for nobody
		if list, err := db.Followers(ctx); err != nil || len(list) == 1 {
			must(err)
			break
		}
	}
	say("ready")
	for n := range 4 {
		writer := fmt.Sprintf("%s-w%d", s.prefix, n)
		all.Go(s.until(func(i int) error {
			if err := db.Append(ctx, holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: fmt.Sprint(writer, " ", i), Actor: "anna"}); err != nil {
				return err
			}
			say(saidCalled, writer, i)
			return nil
		}))
	}
	signed := func(note string, err error) error {
		if errors.Is(err, auditlog.ErrEmpty) {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := json.Marshal(note)
		say(saidSigned, string(text))
		return err
	}
	each := func(every time.Duration, work func() error) func() {
		tick := time.NewTicker(every)
		return s.until(func(int) error {
			<-tick.C
			return work()
		})
	}
	all.Go(each(10*time.Millisecond, func() error {
		note, _, err := l.Signed(ctx)
		return signed(note, err)
	}))
	all.Go(each(50*time.Millisecond, func() error {
		note, _, err := l.Rotate(ctx, nil, "often", "anna")
		return signed(note, err)
	}))
	all.Go(each(30*time.Millisecond, func() error {
		_, err := l.Purge(ctx, auditKept)
		return err
	}))
	all.Wait()
	os.Exit(1) // without a word to the store: it was cut off from its disk
}
