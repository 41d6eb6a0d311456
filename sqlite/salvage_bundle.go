package sqlite

import (
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// A bundle is salvaged with the first row that needs it. If nothing else of a bundle is left, its
// name is free again. The hash of a message tells whether the payload is what was accepted.

// oldBundle finds a bundle in the damaged file. It returns nil if the bundle is lost.
func (s *salvage) oldBundle(number int64) *rows.Bundle {
	if s.bundle != nil && s.bundle.Seq == number {
		return s.bundle // most messages have the bundle of the message before
	}
	r, ok := s.strayBundles[number]
	if !ok {
		r, ok = s.old.Find(s.roots["hf_bundle"], number)
	}
	if !ok {
		return nil
	}
	row, _, ok := describedRow(rows.Of(s.bundle), r)
	if !ok {
		return nil
	}
	s.bundle, _ = row.(*rows.Bundle)
	return s.bundle
}

// contentOf returns the payload of a message, or of its bundle.
func (s *salvage) contentOf(body sqlitefile.Row) []byte {
	if body.Null(1) {
		return body.Bytes(4)
	}
	if b := s.oldBundle(body.Int(1)); b != nil {
		return b.Payload
	}
	return nil
}

// keepBundle copies a bundle, under the name that the notification gives it: no hash covers the name in the
// bundle's own row. If the bundle is lost and empty is true, keepBundle writes known instead.
func (s *salvage) keepBundle(tx *writeTx, known *rows.Bundle, empty bool) error {
	if b := s.oldBundle(known.Seq); b != nil {
		named := *b
		named.Kind, named.Source, named.ID = known.Kind, known.Source, known.ID
		return s.insertPlain(tx, &named)
	}
	if !empty {
		return nil
	}
	return s.insertPlain(tx, known)
}
