package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// ChannelRow returns the row of a channel, for a store to put.
func ChannelRow(c *Channel) (*rows.Channel, error) {
	r := &rows.Channel{
		Name: c.Name, Kind: c.Kind, Settings: c.Settings, Attempts: int64(c.Retry.Attempts), Interval: rows.Micros(c.Retry.Interval),
		Workers: int64(c.Workers), Disabled: c.Disabled, Changed: rows.Now,
	}
	if len(c.Retry.Waits) == 0 {
		return r, nil
	}
	waits := make([]int64, len(c.Retry.Waits))
	for i, w := range c.Retry.Waits {
		waits[i] = rows.Micros(w)
	}
	text, err := json.Marshal(waits)
	r.Waits = string(text)
	return r, err
}

// ListRows returns the rows of a list, for a store to put: its own row before those of its
// recipients.
func ListRows(l *List) []rows.Row {
	list := make([]rows.Row, 1, 1+len(l.Recipients))
	list[0] = &rows.List{Name: l.Name, Description: l.Description, Partial: l.Partial, Recipients: int64(len(l.Recipients)), Changed: rows.Now}
	for i, r := range l.Recipients {
		list = append(list, &rows.Recipient{List: l.Name, Place: int64(i), Channel: r.Channel, Address: r.Address, Name: r.Name, Disabled: r.Disabled})
	}
	return list
}

// DirectoryTables returns the tables whose rows Book.Add takes, in this order.
func DirectoryTables() []*rows.Table {
	return []*rows.Table{rows.Of((*rows.Channel)(nil)), rows.Of((*rows.List)(nil)), rows.Of((*rows.Recipient)(nil))}
}

// Add adds a row to the directory. Its instants are the store's; wall converts one to a time.
func (b *Directory) Add(r rows.Row, wall func(at int64) time.Time) error {
	switch r := r.(type) {
	case *rows.Channel:
		c := Channel{
			Name: r.Name, Kind: r.Kind, Settings: r.Settings, Workers: int(r.Workers), Disabled: r.Disabled, Changed: wall(int64(r.Changed)), Version: int64(r.Changed),
			Retry: Retry{Attempts: int(r.Attempts), Interval: rows.Duration(r.Interval)},
		}
		var waits []int64
		if r.Waits != "" {
			if err := json.Unmarshal([]byte(r.Waits), &waits); err != nil {
				return fmt.Errorf("retry waits of channel %q: %w", c.Name, err)
			}
		}
		for _, w := range waits {
			c.Retry.Waits = append(c.Retry.Waits, rows.Duration(w))
		}
		b.Channels[c.Name] = c
	case *rows.List:
		b.Lists[r.Name] = List{Name: r.Name, Description: r.Description, Partial: r.Partial, Changed: wall(int64(r.Changed)), Version: int64(r.Changed)}
	case *rows.Recipient:
		l := b.Lists[r.List]
		l.Recipients = append(l.Recipients, Recipient{Channel: r.Channel, Address: r.Address, Name: r.Name, Disabled: r.Disabled})
		b.Lists[r.List] = l
	}
	return nil
}

// ReachedDetail returns the detail of the journal's entry that a recipient was asked, for a store to write.
func ReachedDetail(t *Target) []byte {
	b, err := json.Marshal(struct {
		Channel string `json:"channel"`
		Answer  string `json:"answer,omitempty"` // what the other side said
	}{t.Channel, cmp.Or(t.Text, t.Receipt)})
	if err != nil { // texts can always be encoded
		return nil
	}
	return b
}

// TargetRow returns the row of a recipient, for a store to put. seq is that of its message.
func TargetRow(seq int64, t *Target) *rows.Target {
	return &rows.Target{
		Seq: seq, Channel: t.Channel, Address: t.Address, Name: t.Name, Result: int64(t.Result), Code: t.Code, Text: t.Text, Receipt: t.Receipt, Maybe: t.Maybe,
		Attempts: int64(t.Attempts), Cycle: int64(t.Cycle), Server: t.Server, TLS: t.TLS, Truncated: t.Truncated, At: rows.Now,
	}
}
