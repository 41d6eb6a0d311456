package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

// notificationColumnCount is how many hf_notification has.
const notificationColumnCount = 25

// notifications salvages those whose message is there, or that had ended: one
// that still waits without its message would only seem to be delivered some day,
// and its site, which sends again, is to find its id free.
func (s *salvage) notifications(ctx context.Context) (err error) {
	take := func(r sqlitefile.Row) {
		if err == nil && copyOf(r) {
			err = s.add(ctx, 256, func(tx *writeTx) error { return s.insertNotification(tx, r) })
		}
	}
	s.eachOf("hf_notification", notificationColumnCount, take)
	if err == nil && s.damagedSoFar() {
		s.orphans(func(table bool, r sqlitefile.Row) {
			if table && len(r.Values) == notificationColumnCount && r.Null(0) {
				take(r)
			}
		})
	}
	return err
}

func (s *salvage) insertNotification(tx *writeTx, r sqlitefile.Row) error {
	var message driver.Value
	if idFrom(r.Values[3]) != "" {
		message = r.Values[3]
	}
	n, err := tx.exec(salvageNotification, r.ID, r.Values[1], r.Int(2), message, r.Text(4), r.Text(5), r.Text(6), r.Text(7), r.Text(8), r.Text(9), r.Text(10), r.Text(11), r.Text(12),
		intOrNull(r, 13), r.Int(14), r.Int(15), intOrNull(r, 16), intOrNull(r, 17), intOrNull(r, 18), intOrNull(r, 19), intOrNull(r, 20), intOrNull(r, 21),
		nullText(r.Text(22)), nullText(r.Text(23)), intOrNull(r, 24))
	if err != nil || n == 0 {
		return err
	}
	tx.w.db.taken.Store(max(tx.w.db.taken.Load(), r.ID, r.Int(14)))
	s.count(func(d *Damage) { d.Salvaged.Notifications++ })
	b := bundleOfCopy(r)
	if err := s.keepBundle(tx, b, true); err != nil || b.First == 0 {
		return err
	}
	_, err = tx.exec(firstOfBundle, b.Seq, b.First)
	return err
}

// notified returns what the copy of a notification beside a message tells of its bundle, if there is one.
func (s *salvage) notified(seq int64) (*rows.Bundle, bool) {
	r, ok := s.old.Find(s.roots["hf_notification"], seq)
	if !ok || !copyOf(r) {
		return nil, false
	}
	return bundleOfCopy(r), true
}

// bundleOfCopy returns what a copy of a notification tells of its bundle. Only the first copy tells which
// message is the first: in a file that was copied from PostgreSQL the others need not follow it.
func bundleOfCopy(r sqlitefile.Row) *rows.Bundle {
	b := &rows.Bundle{Seq: r.Int(14), Kind: notify.BundleKind, Source: r.Text(8), ID: idFrom(r.Values[1]), Created: rows.Instant(r.Int(15))}
	if r.Int(2) == 0 {
		b.First, b.State = r.ID, r.Int(17)
	}
	return b
}

// copyOf says whether a row is that of a copy of a notification.
func copyOf(r sqlitefile.Row) bool {
	return len(r.Values) == notificationColumnCount && idFrom(r.Values[1]) != "" && r.Int(14) > 0
}
