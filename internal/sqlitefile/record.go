package sqlitefile

import (
	"encoding/binary"
	"math"
)

// Row is a row of a table, or an entry of an index. An entry has no ID.
type Row struct {
	ID     int64
	Values []any // nil, int64, float64, string or []byte
}

// Int returns column i, or 0.
func (r *Row) Int(i int) int64 {
	n, _ := r.at(i).(int64)
	return n
}

// Text returns column i, or "".
func (r *Row) Text(i int) string {
	s, _ := r.at(i).(string)
	return s
}

// Bytes returns column i, or nil.
func (r *Row) Bytes(i int) []byte {
	b, _ := r.at(i).([]byte)
	return b
}

// Null reports whether column i is absent or NULL.
func (r *Row) Null(i int) bool { return r.at(i) == nil }

func (r *Row) at(i int) any {
	if i >= len(r.Values) {
		return nil
	}
	return r.Values[i]
}

// varint reads a number; n is 0 if it is cut off.
func varint(p []byte) (v uint64, n int) {
	for i := range min(len(p), 9) {
		if i == 8 {
			return v<<8 | uint64(p[i]), 9
		}
		v = v<<7 | uint64(p[i]&0x7f)
		if p[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// decode reads a record. It returns false if header and values do not fit together.
func decode(p []byte) ([]any, bool) {
	size, n := varint(p)
	if n == 0 || size > uint64(len(p)) || size < uint64(n) {
		return nil, false
	}
	header, body := p[n:size], p[size:]
	var values []any
	for len(header) > 0 {
		t, n := varint(header)
		if n == 0 || len(values) >= 64 {
			return nil, false
		}
		header = header[n:]
		v, used, ok := value(t, body)
		if !ok {
			return nil, false
		}
		values, body = append(values, v), body[used:]
	}
	return values, len(body) == 0
}

func value(t uint64, p []byte) (v any, used int, ok bool) {
	switch {
	case t <= 4:
		used = int(t)
	case t == 5:
		used = 6
	case t <= 7:
		used = 8
	case t <= 9:
	case t < 12:
		return nil, 0, false // reserved
	case (t-12)/2 > uint64(len(p)):
		return nil, 0, false
	default:
		used = int((t - 12) / 2)
	}
	if used > len(p) {
		return nil, 0, false
	}
	p = p[:used]
	switch {
	case t == 0:
		return nil, 0, true
	case t == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(p)), used, true
	case t == 8 || t == 9:
		return int64(t - 8), 0, true
	case t < 7:
		n := int64(int8(p[0]))
		for _, b := range p[1:] {
			n = n<<8 | int64(b)
		}
		return n, used, true
	case t%2 == 1:
		return string(p), used, true
	}
	return append([]byte{}, p...), used, true
}
