package storetest

import (
	"time"

	"github.com/holdfast-mq/holdfast"
)

// hastened makes some messages due, and no others (F1-06).
func hastened(k *kit) {
	k.put(holdfast.Message{ID: "away"}, holdfast.Message{ID: "later"}, holdfast.Message{ID: "done"})
	waits := holdfast.Settlement{State: holdfast.Pending, Outcome: holdfast.Unreachable, Code: "connection_refused", Error: "nobody", RetryIn: time.Hour}
	var seqs []int64
	for _, c := range k.claim(3) {
		s := waits
		switch c.Message.ID {
		case "later":
			s.RetryIn = 3 * time.Hour
		case "done":
			s = delivered()
		}
		k.wins(c, s)
		seqs = append(seqs, c.Seq)
	}
	k.nothing()
	for _, want := range []int{1, 0} { // the second time it is due already
		if n, err := k.Hasten(k.ctx(), "a", 2*time.Hour, seqs...); err != nil || n != want {
			k.t.Errorf("%d messages, %v; want %d", n, err, want)
		}
	}
	k.wins(k.one("away"), delivered())
	k.nothing()
	k.is("later", holdfast.Pending)
}
