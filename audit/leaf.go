package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/holdfast-mq/holdfast"
)

// leafVersion is the first field of a leaf. A later version may have other fields; leaves are never
// encoded again, so old ones keep their version.
const leafVersion = 1

// leaf is the stored form of a record: JSON with the fields in this order, without empty ones.
type leaf struct {
	Version  int               `json:"v"`
	ID       holdfast.ID       `json:"id"`
	At       string            `json:"at"` // RFC 3339, UTC, microseconds
	Channel  Channel           `json:"channel"`
	Kind     Kind              `json:"kind"`
	Status   Status            `json:"status"`
	Corr     string            `json:"corr,omitempty"`
	Exec     string            `json:"exec,omitempty"`
	Parent   string            `json:"parent,omitempty"`
	Trace    string            `json:"trace,omitempty"`
	Site     string            `json:"site"`
	Node     string            `json:"node"`
	Instance string            `json:"instance,omitempty"`
	Script   string            `json:"script,omitempty"`
	Actor    string            `json:"actor,omitempty"`
	Target   string            `json:"target,omitempty"`
	HTTP     int               `json:"http,omitzero"`
	TookUS   int64             `json:"tookUs,omitzero"`
	Error    string            `json:"error,omitempty"`
	Request  string            `json:"request,omitempty"`
	Response string            `json:"response,omitempty"`
	Extra    jsontext.Value    `json:"extra,omitempty"`
	Sealed   map[string]string `json:"sealed,omitempty"` // commitments by field
}

// leafJSON takes the JSON that people and programs send: names that come twice and damaged texts stop no
// log.
var leafJSON = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) //nolint:gochecknoglobals // constant

const leafTime = "2006-01-02T15:04:05.000000Z"

// Value is a personal value of a record, which stands beside the leaf and can be erased.
type Value struct {
	Field string
	Salt  []byte // 16 random bytes: without them a short value could be guessed from its commitment
	Text  string
}

// Commitment returns what a leaf says about the value: base64url of the SHA-256 of the lengths and
// contents of salt, field and text.
func (v *Value) Commitment() string {
	h := sha256.New()
	for _, part := range [][]byte{v.Salt, []byte(v.Field), []byte(v.Text)} {
		_, _ = fmt.Fprintf(h, "%d:", len(part))
		_, _ = h.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Leaf returns the bytes that are stored and hashed for a record, and its personal values. Two calls
// for a record with personal values give different bytes, since salts are random.
func (r *Record) Leaf() (data []byte, values []Value, err error) {
	if r.ID == "" || r.Site == "" || r.Channel == "" || r.Kind == "" || r.Status == "" {
		return nil, nil, fmt.Errorf("audit record %q of %q lacks its id, site, channel, kind or status: %w", r.ID, r.Site, holdfast.ErrInvalid)
	}
	l := leaf{
		Version: leafVersion, ID: r.ID, At: r.Occurred.UTC().Format(leafTime), Channel: r.Channel, Kind: r.Kind, Status: r.Status,
		Corr: r.Correlation, Exec: r.Execution, Parent: r.Parent, Trace: r.Trace, Site: r.Site, Node: r.Node, Instance: r.Instance, Script: r.Script,
		Actor: r.Actor, Target: r.Target, HTTP: r.HTTP, TookUS: r.Took.Microseconds(), Error: r.Error, Request: r.Request, Response: r.Response, Extra: jsontext.Value(r.Extra),
	}
	for _, field := range r.Personal {
		text := l.personal(field)
		if text == nil {
			return nil, nil, fmt.Errorf("audit record %s: field %q cannot be sealed: %w", r.ID, field, holdfast.ErrInvalid)
		}
		if *text == "" {
			continue
		}
		v := Value{field, make([]byte, 16), *text}
		_, _ = rand.Read(v.Salt)
		if l.Sealed == nil {
			l.Sealed = map[string]string{}
		}
		l.Sealed[field], *text = v.Commitment(), ""
		values = append(values, v)
	}
	data, err = json.Marshal(&l, leafJSON, json.Deterministic(true))
	if err != nil {
		return nil, nil, fmt.Errorf("audit record %s: %w: %w", r.ID, holdfast.ErrInvalid, err)
	}
	return data, values, nil
}

// personal returns the field of this name, or nil if it cannot be sealed.
func (l *leaf) personal(field string) *string {
	switch field {
	case "target":
		return &l.Target
	case "error":
		return &l.Error
	case "request":
		return &l.Request
	case "response":
		return &l.Response
	}
	return nil
}

// ErrLeaf means that bytes are not a leaf of this package, or that a value does not match its
// commitment.
var ErrLeaf = errors.New("not an audit record")

// Read returns the record of a leaf, with the values that still exist. ErrLeaf: the bytes are no leaf
// of a version that this program knows, or a value is not the one that was sealed.
func Read(data []byte, values []Value) (Record, error) {
	var l leaf
	if err := json.Unmarshal(data, &l, leafJSON); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrLeaf, err)
	}
	at, err := time.Parse(leafTime, l.At)
	if err != nil || l.Version != leafVersion {
		return Record{}, fmt.Errorf("%w: version %d, time %q", ErrLeaf, l.Version, l.At)
	}
	r := Record{ID: l.ID, Occurred: at}
	for field, commitment := range l.Sealed {
		text := l.personal(field)
		if text == nil {
			return Record{}, fmt.Errorf("%w: field %q is sealed", ErrLeaf, field)
		}
		r.Personal = append(r.Personal, field)
		i := slices.IndexFunc(values, func(v Value) bool { return v.Field == field })
		if i < 0 {
			r.Erased = append(r.Erased, field)
			continue
		}
		if values[i].Commitment() != commitment {
			return Record{}, fmt.Errorf("%w: the value of %s is not the one that was sealed", ErrLeaf, field)
		}
		*text = values[i].Text
	}
	slices.Sort(r.Personal)
	slices.Sort(r.Erased)
	r.Channel, r.Kind, r.Status = l.Channel, l.Kind, l.Status
	r.Correlation, r.Execution, r.Parent, r.Trace = l.Corr, l.Exec, l.Parent, l.Trace
	r.Site, r.Node, r.Instance, r.Script, r.Actor, r.Target = l.Site, l.Node, l.Instance, l.Script, l.Actor, l.Target
	r.HTTP, r.Took, r.Error = l.HTTP, time.Duration(l.TookUS)*time.Microsecond, l.Error
	r.Request, r.Response, r.Extra = l.Request, l.Response, stdjson.RawMessage(l.Extra)
	return r, nil
}
