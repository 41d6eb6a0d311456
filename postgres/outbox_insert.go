package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// inserts are the parameters and results of insertMessages.
type inserts struct {
	ids, payloads             [][]byte
	routes, lanes             []int32
	bundles                   []*int64
	headers, corr, retry, key []*string
	ttl                       []*int64
	delay                     []int64

	new   map[string]newMessage
	known map[string]oldMessage
}

// newMessage is a message that was inserted.
type newMessage struct {
	seq  int64
	said bool // a receipt has reported it as new
}

type oldMessage struct {
	route   int32
	payload []byte
	state   holdfast.State
}

func newInserts(works []*enqueue) *inserts {
	w := &inserts{new: map[string]newMessage{}, known: map[string]oldMessage{}}
	for _, k := range works {
		for i := range k.entries {
			w.add(&k.entries[i])
		}
	}
	return w
}

func (w *inserts) add(e *entry) {
	m, payload := &e.m, e.m.Payload
	var bundle *int64
	if e.bundle != 0 {
		payload, bundle = []byte{}, &e.bundle
	}
	w.ids, w.payloads, w.bundles = append(w.ids, e.id), append(w.payloads, payload), append(w.bundles, bundle)
	w.routes, w.lanes = append(w.routes, e.route.route), append(w.lanes, e.route.lane)
	w.headers, w.retry = append(w.headers, e.headers), append(w.retry, e.retry)
	w.corr, w.key = append(w.corr, nullText(m.CorrelationID)), append(w.key, nullText(m.OrderingKey))
	w.delay = append(w.delay, micros(m.Delay))
	var ttl *int64
	if m.TTL > 0 {
		n := micros(m.TTL)
		ttl = &n
	}
	w.ttl = append(w.ttl, ttl)
}

func (w *inserts) args() []any {
	return []any{
		w.ids, w.routes, w.lanes, w.payloads, unlessEmpty(w.headers), unlessEmpty(w.corr), unlessEmpty(w.retry),
		unlessEmpty(w.ttl), w.delay, unlessEmpty(w.key), unlessEmpty(w.bundles),
	}
}

// unlessEmpty returns nil for an array of NULLs only, which is less to send and to read.
func unlessEmpty[T any](list []*T) []*T {
	for _, v := range list {
		if v != nil {
			return list
		}
	}
	return nil
}

func (w *inserts) read(rows pgx.Rows) error {
	var id []byte
	var n newMessage
	err := rows.Scan(&id, &n.seq)
	w.new[string(id)] = n
	return err
}

func (w *inserts) old() [][]byte {
	list := make([][]byte, 0, len(w.ids)-len(w.new))
	for _, id := range w.ids {
		if _, ok := w.new[string(id)]; !ok {
			list = append(list, id)
		}
	}
	return list
}

func (w *inserts) readOld(rows pgx.Rows) error {
	var id []byte
	var o oldMessage
	var queued, owned bool
	var final int16
	if err := rows.Scan(&id, &o.route, &o.payload, &queued, &owned, &final); err != nil {
		return err
	}
	switch {
	case !queued:
		o.state = holdfast.State(final)
	case owned:
		o.state = holdfast.Claimed
	}
	w.known[string(id)] = o
	return nil
}

func (w *inserts) keys(works []*enqueue) (list []orderingKey) {
	for _, k := range works {
		for i := range k.entries {
			if e := &k.entries[i]; e.m.OrderingKey != "" {
				list = append(list, orderingKey{e.route.lane, e.m.OrderingKey})
			}
		}
	}
	return list
}
