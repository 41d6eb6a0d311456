package demo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
)

// What sites take beside orders must be able to come out wrong, too: parked is
// only what was refused, and what a node gives a reason for.
func TestTheBooksFindWhatIsWrong(t *testing.T) {
	t.Parallel()
	taken := func(b *demo.Book, id string, to ...string) {
		b.Try(id, to...)
		b.Accept(id)
	}
	for name, c := range map[string]struct {
		happens func(b *demo.Book)
		want    demo.Counts
		wrong   string
	}{
		"a notification has arrived with its last mail, and a mail comes twice": {
			happens: func(b *demo.Book) {
				taken(b, "notification-1", "jane", "john")
				taken(b, "notification-2", "jane", "john")
				for _, address := range []string{"jane", "john", "john"} {
					_ = b.Mail("<1>", "notification-1", address)
				}
				_ = b.Mail("<2>", "notification-2", "jane")
			},
			want: demo.Counts{
				Notifications: demo.Tally{Sent: 2, Delivered: 1, Waiting: 1, Lost: 1},
				Mails:         demo.Tally{Sent: 4, Delivered: 3, Waiting: 1, Lost: 1, Duplicates: 1},
			},
			wrong: "1 accepted mails were neither delivered nor refused",
		},
		"a mail comes twice as another": {
			happens: func(b *demo.Book) {
				taken(b, "notification-1", "jane")
				_ = b.Mail("<1>", "notification-1", "jane")
				_ = b.Mail("<2>", "notification-1", "jane")
			},
			want: demo.Counts{
				Notifications: demo.Tally{Sent: 1, Delivered: 1},
				Mails:         demo.Tally{Sent: 1, Delivered: 1, Doubled: 1},
			},
			wrong: "1 mails took effect more than once",
		},
		"refused and parked, its mails as well": {
			happens: func(b *demo.Book) {
				taken(b, "notification-1", "nobody")
				b.Refuse("notification-1")
				b.Park("notification-1", "no such user")
			},
			want: demo.Counts{Notifications: demo.Tally{Sent: 1, Refused: 1}, Mails: demo.Tally{Sent: 1, Refused: 1}},
		},
		"parked and never refused": {
			happens: func(b *demo.Book) { taken(b, "call-1"); b.Park("call-1", "no mood") },
			want:    demo.Counts{Calls: demo.Tally{Sent: 1, Waiting: 1, Lost: 1}},
			wrong:   "1 accepted calls were neither",
		},
		"refused and not parked": {
			happens: func(b *demo.Book) { taken(b, "call-1"); b.Refuse("call-1") },
			want:    demo.Counts{Calls: demo.Tally{Sent: 1, Waiting: 1, Lost: 1}},
			wrong:   "1 accepted calls were neither",
		},
		"parked without a reason": {
			happens: func(b *demo.Book) { taken(b, "write-1"); b.Refuse("write-1"); b.Park("write-1", "") },
			want:    demo.Counts{Writes: demo.Tally{Sent: 1, Waiting: 1, Lost: 1}},
			wrong:   "1 accepted writes were neither",
		},
		"a call is repeated, and another one comes under two keys": {
			happens: func(b *demo.Book) {
				taken(b, "call-1")
				taken(b, "call-2")
				for _, key := range []string{"a", "a", "a"} {
					_ = b.Called(key, "call-1")
				}
				_ = b.Called("b", "call-2")
				_ = b.Called("c", "call-2")
			},
			want:  demo.Counts{Calls: demo.Tally{Sent: 2, Delivered: 2, Duplicates: 2, Doubled: 1}},
			wrong: "1 calls took effect more than once",
		},
		"a row that was written again is seen each time": {
			happens: func(b *demo.Book) {
				taken(b, "write-1")
				_ = b.Row("a", "write-1", 2)
				_ = b.Row("a", "write-1", 3)
				_ = b.Row("a", "write-1", 3)
			},
			want: demo.Counts{Writes: demo.Tally{Sent: 1, Delivered: 1, Duplicates: 2}},
		},
		"effects of nothing": {
			happens: func(b *demo.Book) { _ = b.Called("a", "call-1"); _ = b.Row("a", "write-1", 1) },
			want:    demo.Counts{Calls: demo.Tally{Foreign: 1}, Writes: demo.Tally{Foreign: 1}},
			wrong:   "1 calls took effect and were never sent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := demo.NewBook(nil)
			c.happens(b)
			final := b.Final()
			if diff := cmp.Diff(c.want, final); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if err := final.Err(); (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got error %v, want %q", err, c.wrong)
			}
		})
	}
}
