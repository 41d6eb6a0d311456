package sqlite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	auditlog "github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// TestPowerCutOfAnAuditLog cuts the power of a node whose audit log is written, signed, handed over to other keys and purged at once.
// After each cut the log goes on: it is intact, it has each checkpoint that was answered, and of each
// writer all records that were answered, but for those that were purged.
func TestPowerCutOfAnAuditLog(t *testing.T) {
	racetest.Without(t, "the process that writes would be the same, only slower")
	sum, called, signed, handed, purged := cutSum{}, 0, 0, 0, int64(0)
	for sum.cuts < *cuts {
		d := newPowerDisk(t, *mkfs)
		book := newAcks()
		for n := 0; n < diskLife && sum.cuts < *cuts; n += lifeCuts {
			p := childOn(t, book, "audit", filepath.Join(d.dir, "holdfast.db"), fmt.Sprintf("l%d", n))
			p.work(1)
			p.hear(time.Now().Add(time.Duration(rand.IntN(120)) * time.Millisecond))
			for range min(lifeCuts, *cuts-sum.cuts) - 1 {
				p.freeze(t)
				sum.cut(p)
				c := d.copyDisk(t)
				purged += judgeAudit(t, c, book, sum.cuts)
				c.drop(t)
				p.thaw(t)
				p.work(100)
				p.hear(time.Now().Add(time.Duration(rand.IntN(500)) * time.Millisecond))
			}
			sum.cut(p)
			p.lose(t, d)
			purged += judgeAudit(t, d, book, sum.cuts)
		}
		called, signed = called+len(book.said[saidCalled]), signed+len(book.said[saidSigned])
		if err := notes(book.said[saidSigned]).Each(func(note string) error {
			if auditlog.HandsOver(note) {
				handed++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		d.unmount(t)
	}
	t.Logf("%d power cuts; answered: %d entries, %d checkpoints, %d of them changes of the key; %d records were found purged", sum.cuts, called, signed, handed, purged)
	if called == 0 || signed == 0 || handed == 0 || purged == 0 {
		t.Error("too little was done: the test did not test")
	}
}

// notes are checkpoints that a test keeps.
type notes map[string]bool

func (n notes) Each(yield func(note string) error) error {
	for text := range n {
		var note string
		if err := json.Unmarshal([]byte(text), &note); err != nil {
			return err
		}
		if err := yield(note); err != nil {
			return err
		}
	}
	return nil
}

// judgeAudit starts the log that a cut has left. It returns how many records were purged.
func judgeAudit(t *testing.T, d *powerDisk, book *acks, cut int) int64 {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(d.dir, "holdfast.db"), sqlite.Options{Source: "test"})
	if err != nil {
		t.Fatalf("cut %d: the start failed: %v", cut, err)
	}
	defer shut(t, db)
	l, err := surgeLog(db, d.dir)
	if err != nil {
		t.Fatalf("cut %d: the key: %v", cut, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	waittest.Until(t, "the log follows", func() bool {
		list, err := db.Followers(t.Context())
		return err == nil && len(list) == 1 && list[0].Unread.IsZero()
	})
	cancel()
	if err := <-ended; err != nil || l.Failures() > 0 {
		t.Errorf("cut %d: append: %v, %d failures", cut, err, l.Failures())
	}
	if err := l.Checkpoint(t.Context()); err != nil {
		t.Errorf("cut %d: sign: %v", cut, err)
	}
	return compareAudit(t, l, book, cut)
}

// compareAudit compares a log with what was answered.
func compareAudit(t *testing.T, l *auditlog.Log, book *acks, cut int) int64 {
	t.Helper()
	o := auditlog.VerifyOptions{Keys: []auditlog.Public{l.Key.Public()}, Witness: notes(book.said[saidSigned])}
	if len(book.said[saidSigned]) == 0 {
		o.Witness = l.Witness
	}
	r, err := auditlog.Verify(t.Context(), l.Store, o)
	if err != nil || len(r.Logs) != 1 || r.Logs[0].Fault != "" || r.Logs[0].Anchored != r.Logs[0].Size {
		t.Fatalf("cut %d: %+v, %v", cut, r, err)
	}
	own := r.Logs[0]
	stands, first := map[string]bool{}, map[string]int{} // what each writer has written, and the first of it that stands
	if err := l.Store.Records(t.Context(), 1, 0, 1<<30, func(s *auditlog.Stored) error {
		r, err := auditlog.Read(s.Leaf, nil)
		if writer, n, ok := strings.Cut(r.Correlation, " "); ok && !stands[r.Correlation] {
			if stands[r.Correlation] = true; first[writer] == 0 {
				first[writer] = number(t, n) + 1
			}
		} else if ok {
			t.Errorf("cut %d: %s is recorded twice", cut, r.Correlation)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for call := range book.said[saidCalled] {
		writer, n, _ := strings.Cut(call, " ")
		if at := first[writer]; !stands[call] && (own.First == 1 || at > 0 && number(t, n)+1 > at) {
			t.Errorf("cut %d: %s was answered, and is not in the log from %d to %d", cut, call, own.First, own.Size)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return own.First - 1
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
