package move

import (
	"encoding/binary"
	"fmt"

	"github.com/holdfast-mq/holdfast"
)

// Channel is a way to people.
type Channel struct {
	Name, Kind         string
	Settings           []byte
	Attempts, Interval int64
	Waits              []int64
	Workers            int64
	Disabled           bool
	Changed            int64
}

// List is who gets a notification.
type List struct {
	Name, Description string
	Partial           bool
	Changed           int64
	Recipients        []Recipient // in their order
}

// Recipient is one address of a list.
type Recipient struct {
	Channel, Address, Name string
	Disabled               bool
}

// Notification is one copy of a notification. Its seq is that of its message,
// which may be purged.
type Notification struct {
	Seq, Copy                                 int64
	ID, Message                               holdfast.ID
	Channel, Type, List, Subject              string
	Payload, Hash                             []byte // the payload once its message is purged, of the first copy
	Site, Instance, Script, Execution, Parent string
	Enqueued                                  int64 // by the clock of its site, and no distance
	Created, Delivered                        int64
	Gone                                      *Gone // what it was when its message was purged; nil: the message is there
	Targets                                   []Target
}

// Gone is how a message stood that is purged.
type Gone struct {
	State                  int64
	Settled, Tried         int64
	Failures, Tries, Cycle int64
	Reason, LastError      string
}

// Target is what became of one recipient.
type Target struct {
	Channel, Address, Name string
	Result                 int64
	Code, Text, Receipt    string
	Maybe                  bool
	Attempts, Cycle        int64
	Server, TLS            string
	Truncated              bool
	At                     int64
}

// eachText calls f with the texts that people read.
func (c *Config) eachText(f func(texts ...*string)) {
	for i := range c.Channels {
		f(&c.Channels[i].Name, &c.Channels[i].Kind)
	}
	for i := range c.Lists {
		l := &c.Lists[i]
		f(&l.Name, &l.Description)
		for j := range l.Recipients {
			f(&l.Recipients[j].Channel, &l.Recipients[j].Address, &l.Recipients[j].Name)
		}
	}
}

func (n *Notification) eachText(f func(texts ...*string)) {
	f(&n.Channel, &n.Type, &n.List, &n.Subject, &n.Site, &n.Instance, &n.Script, &n.Execution, &n.Parent)
	if n.Gone != nil {
		f(&n.Gone.Reason, &n.Gone.LastError)
	}
	for i := range n.Targets {
		t := &n.Targets[i]
		f(&t.Channel, &t.Address, &t.Name, &t.Code, &t.Text, &t.Receipt, &t.Server, &t.TLS)
	}
}

// book are the rows of channels and lists.
func (c *Config) book() (list []row) {
	list = append(list, row{name: "the version of channels and lists", fields: []field{number("version", c.Book)}})
	for _, ch := range c.Channels {
		var waits []byte
		for _, w := range ch.Waits {
			waits = binary.BigEndian.AppendUint64(waits, uint64(w))
		}
		list = append(list, row{name: fmt.Sprintf("channel %q", ch.Name), fields: []field{
			text("name", ch.Name), text("kind", ch.Kind),
			{"settings", ch.Settings},
			number("attempts", ch.Attempts), number("interval", ch.Interval),
			{"waits", waits},
			number("workers", ch.Workers), bit("switch", ch.Disabled), number("time of change", ch.Changed),
		}})
	}
	for _, l := range c.Lists {
		fields := []field{text("name", l.Name), text("description", l.Description), bit("mark of partial delivery", l.Partial), number("time of change", l.Changed)}
		for _, r := range l.Recipients {
			fields = append(fields, text("channel of a recipient", r.Channel), text("address of a recipient", r.Address), text("name of a recipient", r.Name), bit("switch of a recipient", r.Disabled))
		}
		list = append(list, row{name: fmt.Sprintf("list %q", l.Name), fields: fields})
	}
	return list
}

func (n *Notification) row() row {
	fields := []field{
		number("seq", n.Seq), number("copy", n.Copy), text("id", string(n.ID)), text("message", string(n.Message)), text("channel", n.Channel), text("type", n.Type),
		text("list", n.List), text("subject", n.Subject),
		{"payload", n.Payload},
		{"hash", n.Hash},
		text("site", n.Site), text("instance", n.Instance),
		text("script", n.Script), text("execution", n.Execution), text("parent execution", n.Parent), number("time at its site", n.Enqueued), number("creation", n.Created),
		number("delivery", n.Delivered), bit("archive", n.Gone != nil),
	}
	if g := n.Gone; g != nil {
		fields = append(fields, number("state", g.State), number("time of settlement", g.Settled), number("last attempt", g.Tried), number("failures", g.Failures), number("tries", g.Tries),
			number("cycle", g.Cycle), text("reason", g.Reason), text("last error", g.LastError))
	}
	for i := range n.Targets {
		t := &n.Targets[i]
		fields = append(fields, text("channel of a recipient", t.Channel), text("address of a recipient", t.Address), text("name of a recipient", t.Name), number("result", t.Result),
			text("code", t.Code), text("text", t.Text), text("receipt", t.Receipt), bit("doubt", t.Maybe), number("attempts", t.Attempts), number("cycle of a recipient", t.Cycle), text("server", t.Server), text("TLS", t.TLS),
			bit("cut", t.Truncated), number("time of the attempt", t.At))
	}
	return row{name: fmt.Sprintf("notification %s (seq %d)", n.ID, n.Seq), notification: true, fields: fields}
}
