package notify_test

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// F1-05: notifications, and copies, that differ in site, id or channel have
// messages of their own; one and the same has the same always. Message-Ids of
// mails and webhook-ids are made of it.
func FuzzMessageIDs(f *testing.F) {
	long := strings.Repeat("a", holdfast.MaxIDLen)
	for _, two := range [][6]string{
		{"plant-1", "tank-4", "", "plant-2", "tank-4", ""},
		{"plant-1", "tank-4", "", "plant-1", "tank-5", ""},
		{"plant-1", "tank-4", "mail", "plant-1", "tank-4", "chat"},
		{"plant-1", "1tank", "", "plant-11", "tank", ""},
		{"a", "b.c", "", "a", "b", "c"},
		{"a.b", "c", "", "a", "b.c", ""},
		{"a", long, "", "a", long[1:] + "b", ""},
		{"", "\xff", "", "", "\xfe", ""},
		{"a", "0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11", "", "b", "0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11", ""},
	} {
		f.Add(two[0], two[1], two[2], two[3], two[4], two[5])
	}
	f.Fuzz(func(t *testing.T, site, id, channel, site2, id2, channel2 string) {
		one, other := notify.MessageID(site, holdfast.ID(id), channel), notify.MessageID(site2, holdfast.ID(id2), channel2)
		if same := site == site2 && id == id2 && channel == channel2; (one == other) != same {
			t.Errorf("%q %q %q and %q %q %q became %s and %s", site, id, channel, site2, id2, channel2, one, other)
		}
		if parsed, err := holdfast.ParseID(string(one)); err != nil || parsed != one || len(one) != 36 {
			t.Errorf("%s is no canonical UUID: %v", one, err)
		}
	})
}

// Ids that the product mints give their order to the messages, so that an index
// of them grows at its end.
func TestMessagesStandInTheOrderOfTheirNotifications(t *testing.T) {
	t.Parallel()
	id := holdfast.ID("0193b3a8-6b7e-7c3e-9d61-0d2f4a6f1e11")
	n := notify.Notification{ID: id, Origin: notify.Origin{Site: "plant-7"}}
	if got := n.Key(); !strings.HasPrefix(string(got), "0193b3a8-6b7e-8") || got != notify.MessageID("plant-7", id, "") {
		t.Errorf("got %s", got)
	}
}
