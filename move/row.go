package move

import (
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/holdfast-mq/holdfast"
)

// field is one part of a row, as bytes that are the same wherever it stands.
type field struct {
	name  string
	value []byte
}

func text(name, s string) field { return field{name, []byte(s)} }

func number(name string, n int64) field {
	return field{name, binary.BigEndian.AppendUint64(nil, uint64(n))}
}

func bit(name string, b bool) field {
	if b {
		return number(name, 1)
	}
	return number(name, 0)
}

// write adds the row to a digest; each field with its length, so that no
// boundary can move.
func (x *row) write(h hash.Hash) {
	var n [8]byte
	for _, f := range x.fields {
		binary.BigEndian.PutUint64(n[:], uint64(len(f.value)))
		_, _ = h.Write(n[:]) // never fails
		_, _ = h.Write(f.value)
	}
}

// rows are those of a page in canonical form.
func (p *Page) rows() (list []row) {
	if s := p.Settings; s != nil {
		list = append(list, row{name: "the settings", fields: []field{number("notices", s.Notices)}})
		for _, l := range s.Lanes {
			list = append(list, row{name: fmt.Sprintf("lane %q", l.Destination), fields: []field{
				text("destination", l.Destination), bit("order", l.Strict), text("fault", l.Fault), number("time of the fault", l.FaultSince),
			}})
		}
		for _, t := range s.Tokens {
			list = append(list, row{name: fmt.Sprintf("token %q", t.Name), fields: []field{
				text("name", t.Name), text("role", t.Role), {"secret", t.Hash}, number("creation", t.Created), number("last use", t.Used),
			}})
		}
		for _, x := range s.Sites {
			list = append(list, row{name: fmt.Sprintf("site %q", x.Name), fields: []field{
				text("name", x.Name), text("version", x.Version),
				{"token", x.Token},
				{"credential", x.Credential},
				{"former credential", x.Former},
				number("creation", x.Created), number("end of the token", x.TokenUntil), number("end of the former credential", x.FormerUntil),
				number("enrolment", x.Enrolled), number("last visit", x.Seen), number("revocation", x.Revoked),
			}})
		}
	}
	if p.Settings != nil {
		list = append(list, p.Settings.book()...)
	}
	for i := range p.Messages {
		list = append(list, p.Messages[i].row())
	}
	for i := range p.Events {
		list = append(list, p.Events[i].row())
	}
	for i := range p.Inbox {
		list = append(list, p.Inbox[i].row())
	}
	for i := range p.Notifications {
		list = append(list, p.Notifications[i].row())
	}
	return list
}

func (m *Message) row() row {
	due := m.Due
	if m.Waits || m.State != holdfast.Pending {
		due = None
	}
	return row{name: fmt.Sprintf("message %s (seq %d)", m.ID, m.Seq), message: m, fields: []field{
		number("seq", m.Seq), text("id", string(m.ID)), text("source", m.Source), text("destination", m.Destination), text("kind", m.Kind), text("endpoint", m.Endpoint),
		text("correlation id", m.CorrelationID), text("ordering key", m.OrderingKey),
		{"payload", m.Payload},
		text("headers", m.Headers), text("retry policy", m.Retry),
		number("TTL", m.TTL), number("state", int64(m.State)), number("creation", m.Created), number("due time", due), number("expiry", m.Expires),
		number("first try", m.FirstTry), number("time of settlement", m.Settled), number("start", m.Start), number("failures", m.Failures), number("tries", m.Tries), number("cycle", m.Cycle),
		text("reason", m.Reason), bit("place in its ordering key", m.Waits), bit("force", m.Force), bit("given up", m.GivenUp),
	}}
}

func (e *Event) row() row {
	return row{name: fmt.Sprintf("history entry %d of the message with seq %d", e.Seq, e.Message), event: true, fields: []field{
		number("seq", e.Seq), number("message", e.Message), number("kind", e.Kind), number("state", e.State), number("time", e.At), number("cycle", e.Cycle),
		number("attempt", e.Attempt), number("outcome", e.Outcome), bit("charge", e.Charged), bit("doubt", e.Maybe), number("duration", e.Took),
		text("reason", e.Reason), text("code", e.Code), text("error", e.Error), text("actor", e.Actor),
	}}
}

func (in *Incoming) row() row {
	return row{name: fmt.Sprintf("incoming message %s from %q", in.ID, in.Source), incoming: in, fields: []field{
		number("seq", in.Seq), text("source", in.Source), text("id", string(in.ID)), text("endpoint", in.Endpoint),
		{"hash", in.Hash},
		bit("state", in.Kept),
		number("time of receipt", in.Received), number("time of processing", in.Processed), number("expiry", in.Expires),
		{"response", in.Response},
		text("kind", in.Kind), text("headers", in.Headers), text("correlation id", in.CorrelationID),
		{"payload", in.Payload},
	}}
}
