package storecopy

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-mq/holdfast/rows"
)

// words returns what people read for a table; a table that is not listed goes by its own name.
func words(t *rows.Table) (phase, holds string) {
	switch t.Name {
	case "hf_message":
		return "messages", "messages"
	case "hf_entry":
		return "history", "a history"
	case "hf_inbox":
		return "inbox", "ids of an inbox"
	case "hf_notification":
		return "notifications", "notifications"
	case "hf_meta":
		return "settings", "" // every store has them
	}
	name := strings.TrimPrefix(t.Name, "hf_")
	return name, name + "s"
}

// called returns a description of a row for people.
func called(r rows.Row) string {
	switch r := r.(type) {
	case *rows.Message:
		return fmt.Sprintf("message %s (seq %d)", r.ID, r.Seq)
	case *rows.Entry:
		return fmt.Sprintf("history entry %d of the message with seq %d", r.Seq, r.Message)
	case *rows.Incoming:
		return fmt.Sprintf("incoming message %s from %q", r.ID, r.Source)
	case *rows.Notification:
		return fmt.Sprintf("notification %s (seq %d)", r.ID, r.Seq)
	case *rows.Settings:
		return "the settings"
	}
	t := rows.Of(r)
	return strings.TrimPrefix(t.Name, "hf_") + " " + t.Place(r)
}

// canonical returns a field as bytes that are the same in every store.
func canonical(field any) []byte {
	if b, ok := field.(*[]byte); ok {
		return *b
	}
	v := reflect.ValueOf(field).Elem()
	switch {
	case v.Kind() == reflect.String:
		return []byte(v.String())
	case v.Kind() == reflect.Bool && v.Bool():
		return []byte{1}
	case v.Kind() == reflect.Bool:
		return []byte{0}
	case v.CanUint():
		return binary.BigEndian.AppendUint64(nil, v.Uint())
	}
	return binary.BigEndian.AppendUint64(nil, uint64(v.Int()))
}

// tidy replaces NUL bytes and invalid UTF-8, which not every store can keep, in texts that only
// people read.
func tidy(list []rows.Row) {
	for _, r := range list {
		t := rows.Of(r)
		for i, f := range t.Fields(r) {
			if s, ok := f.(*string); ok && !t.Columns[i].Exact {
				*s = strings.ToValidUTF8(strings.ReplaceAll(*s, "\x00", "�"), "�")
			}
		}
	}
}
