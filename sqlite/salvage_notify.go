package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"log/slog"

	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// Columns of the tables of notifications.
const (
	notificationColumnCount = 25
	notificationBodyColumns = 2
	targetColumnCount       = 15
	channelColumns          = 9
	listColumns             = 5
	recipientColumns        = 6
)

// oldList is a list of a damaged file.
type oldList struct {
	row        sqlitefile.Row // empty: it is lost
	recipients map[int64]sqlitefile.Row
}

// book salvages channels and lists, which stand nowhere else. What is missing is
// told: who reads the log can put it back.
func (s *salvage) book(ctx context.Context) error {
	channels, lists := map[string]sqlitefile.Row{}, map[string]*oldList{}
	list := func(name string) *oldList {
		if lists[name] == nil {
			lists[name] = &oldList{recipients: map[int64]sqlitefile.Row{}}
		}
		return lists[name]
	}
	take := func(r sqlitefile.Row) {
		switch {
		case r.Text(0) == "":
		case len(r.Values) == channelColumns && r.Text(1) != "":
			channels[r.Text(0)] = r
		case len(r.Values) == listColumns && !r.Null(2) && !r.Null(3):
			list(r.Text(0)).row = r
		case len(r.Values) == recipientColumns && !r.Null(1) && !r.Null(5):
			list(r.Text(0)).recipients[r.Int(1)] = r
		}
	}
	whole := s.entries("hf_channel", channelColumns, take)
	whole = s.entries("hf_list", listColumns, take) && whole
	whole = s.entries("hf_recipient", recipientColumns, take) && whole
	if !whole {
		s.orphans(func(table bool, r sqlitefile.Row) {
			if n := len(r.Values); !table && (n == channelColumns || n == recipientColumns) {
				take(r) // a row of hf_list looks like one of an index
			}
		})
		s.db.log.ErrorContext(ctx, "salvage: pages of channels and lists are damaged: some that are not named here may be lost", slog.String("file", s.file))
	}
	for _, r := range channels {
		if err := s.add(ctx, 0, func(tx *writeTx) error { return s.insertChannel(tx, r) }); err != nil {
			return err
		}
	}
	for name, l := range lists {
		s.tellLost(ctx, name, l)
		if err := s.add(ctx, 64*len(l.recipients), func(tx *writeTx) error { return s.insertList(tx, name, l) }); err != nil {
			return err
		}
	}
	if len(channels)+len(lists) == 0 {
		return nil
	}
	return s.add(ctx, 0, func(tx *writeTx) error {
		_, err := tx.exec(bumpBook)
		return err
	})
}

// tellLost says what of a list is lost.
func (s *salvage) tellLost(ctx context.Context, name string, l *oldList) {
	want := int64(0)
	if len(l.row.Values) > 0 {
		want = max(l.row.Int(3), 0)
	} else {
		s.db.log.ErrorContext(ctx, "salvage: of a list only recipients are left: its description is lost", slog.String("list", name))
	}
	for place := range l.recipients {
		want = max(want, place+1)
	}
	if lost := want - int64(len(l.recipients)); lost > 0 {
		s.db.log.ErrorContext(ctx, "salvage: recipients of a list are lost: put them back", slog.String("list", name), slog.Int64("lost", lost), slog.Int("kept", len(l.recipients)))
	}
}

func (s *salvage) insertChannel(tx *writeTx, r sqlitefile.Row) error {
	var waits driver.Value
	if !r.Null(5) && json.Valid([]byte(r.Text(5))) {
		waits = r.Text(5)
	}
	n, err := tx.exec(salvageChannel, r.Text(0), r.Text(1), nullBytes(r.Bytes(2)), r.Int(3), r.Int(4), waits, r.Int(6), asBit(r.Int(7) == 1), r.Int(8))
	s.count(func(d *Damage) { d.Salvaged.Channels += n })
	return err
}

func (s *salvage) insertList(tx *writeTx, name string, l *oldList) error {
	n, err := tx.exec(salvageList, name, l.row.Text(1), asBit(l.row.Int(2) == 1), int64(len(l.recipients)), l.row.Int(4))
	if err != nil || n == 0 {
		return err
	}
	s.count(func(d *Damage) { d.Salvaged.Lists++ })
	for _, r := range l.recipients {
		n, err := tx.exec(salvageRecipient, name, r.Int(1), r.Text(2), r.Text(3), r.Text(4), asBit(r.Int(5) == 1))
		if err != nil {
			return err
		}
		s.count(func(d *Damage) { d.Salvaged.Recipients += n })
	}
	return nil
}

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

// notificationParts salvages texts and recipients of the notifications that there are.
func (s *salvage) notificationParts(ctx context.Context) (err error) {
	s.eachOf("hf_notification_body", notificationBodyColumns, func(r sqlitefile.Row) {
		if err == nil {
			err = s.add(ctx, len(r.Bytes(1)), func(tx *writeTx) error {
				_, err := tx.exec(salvageNotificationBody, r.ID, payload(r.Bytes(1)))
				return err
			})
		}
	})
	s.entries("hf_target", targetColumnCount, func(r sqlitefile.Row) {
		if err == nil {
			err = s.add(ctx, 256, func(tx *writeTx) error {
				_, err := tx.exec(salvageTarget, r.Int(0), r.Text(1), r.Text(2), r.Text(3), min(max(r.Int(4), 0), 3), r.Text(5), r.Text(6), r.Text(7), asBit(r.Int(8) == 1), r.Int(9), r.Int(10),
					r.Text(11), r.Text(12), asBit(r.Int(13) == 1), r.Int(14))
				return err
			})
		}
	})
	return err
}
