package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// Columns of the tables of notifications.
const (
	notificationColumnCount = 25
	notificationBodyColumns = 2
)

// notifications salvages those whose message is there, or that had ended: one
// that still waits without its message would only seem to be delivered some day,
// and its site, which sends again, is to find its id free.
func (s *salvage) notifications(ctx context.Context) (err error) {
	take := func(r sqlitefile.Row) {
		if err == nil && idFrom(r.Values[1]) != "" && len(r.Bytes(14)) == 32 {
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
		intOrNull(r, 13), r.Bytes(14), r.Int(15), intOrNull(r, 16), intOrNull(r, 17), intOrNull(r, 18), intOrNull(r, 19), intOrNull(r, 20), intOrNull(r, 21),
		nullText(r.Text(22)), nullText(r.Text(23)), intOrNull(r, 24))
	if err != nil || n == 0 {
		return err
	}
	tx.w.db.taken.Store(max(tx.w.db.taken.Load(), r.ID))
	s.count(func(d *Damage) { d.Salvaged.Notifications++ })
	if !r.Null(17) {
		return nil
	}
	body, ok := s.body(r.ID) // of a message that is lost
	if !ok {
		return nil
	}
	_, err = tx.exec(salvageNotificationBody, r.ID, body.Bytes(1))
	return err
}

// notificationTexts salvages texts of the notifications that there are.
func (s *salvage) notificationTexts(ctx context.Context) (err error) {
	s.eachOf("hf_notification_body", notificationBodyColumns, func(r sqlitefile.Row) {
		if err == nil {
			err = s.add(ctx, len(r.Bytes(1)), func(tx *writeTx) error {
				_, err := tx.exec(salvageNotificationBody, r.ID, payload(r.Bytes(1)))
				return err
			})
		}
	})
	return err
}
