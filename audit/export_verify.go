package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-mq/holdfast/rows"
)

// ErrExport means that a file is not a whole, unfiltered export in JSON Lines.
var ErrExport = errors.New("not a whole audit export in JSON Lines without a filter")

// maxExportLine is more than a record can have.
const maxExportLine = 16 << 20

// VerifyExport verifies an export as Verify does a store, without the tree, which an export does not
// have: the chain hash that a checkpoint signs covers the same records. It reads the file twice. A file
// that is not readable as an export is an ErrExport.
func VerifyExport(ctx context.Context, file io.ReadSeeker, o VerifyOptions) (Report, error) {
	x := &exported{file: file}
	if err := x.open(); err != nil {
		return Report{}, err
	}
	r, err := verify(ctx, x, &verification{VerifyOptions: o, exported: true, copy: x.copy, handed: x.handed, purge: x.purge})
	for i := range r.Logs {
		r.Logs[i].Own = !x.copy
	}
	return r, err
}

// exported is the Reader of one export. Records can be read once.
type exported struct {
	file   io.ReadSeeker
	lines  *bufio.Reader
	log    rows.AuditLog
	last   int64
	note   string
	handed []string
	copy   bool
	gaps   []gap
	purge  *Proof
	left   int64 // records that were not read yet
}

// line reads the next line. The end of the file is io.EOF.
func (x *exported) line(keep []byte) ([]byte, error) {
	keep = keep[:0]
	for {
		part, err := x.lines.ReadSlice('\n')
		keep = append(keep, part...)
		switch {
		case len(keep) > maxExportLine:
			return nil, fmt.Errorf("%w: a line is longer than %d bytes", ErrExport, maxExportLine)
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(keep) > 0:
			return nil, fmt.Errorf("%w: the last line is cut off", ErrExport)
		default:
			return keep, err
		}
	}
}

// open reads the first and the last line, and counts those between them.
func (x *exported) open() error {
	x.lines = bufio.NewReaderSize(x.file, 64<<10)
	var text, before []byte
	var head ExportHeader
	for n := int64(0); ; n++ {
		line, err := x.line(before)
		if errors.Is(err, io.EOF) {
			x.left = n - 2
			break
		}
		if err != nil {
			return err
		}
		if n == 0 && json.Unmarshal(line, &head) != nil {
			return fmt.Errorf("%w: the first line is no header", ErrExport)
		}
		text, before = line, text
	}
	var tail ExportTrailer
	hash, err := hex.DecodeString(head.Before)
	switch {
	case err != nil || len(hash) != hashSize || head.Version != 1 || head.Origin == "" || head.From < 1:
		return fmt.Errorf("%w: the header makes no sense", ErrExport)
	case head.Filter != nil:
		return fmt.Errorf("%w: it has only the records that match a filter", ErrExport)
	case x.left < 0 || strict(text, &tail) != nil:
		return fmt.Errorf("%w: the last line is no trailer", ErrExport)
	}
	x.note, x.handed, x.copy, x.purge = tail.Checkpoint, tail.HandOvers, head.Copy, tail.Purge
	missing, end := int64(0), head.From-1
	for _, g := range tail.Gaps {
		hash, err := hex.DecodeString(g.Hash)
		if g.First <= end || g.Last < g.First || err != nil || len(hash) != hashSize || !x.copy {
			return fmt.Errorf("%w: the gaps in the trailer make no sense", ErrExport)
		}
		missing, end, x.gaps = missing+g.Last-g.First+1, g.Last, append(x.gaps, gap{g.First, g.Last, Hash(hash)})
	}
	x.log = rows.AuditLog{Log: 1, Origin: head.Origin, Own: true, Size: head.From - 1 + tail.Count + missing, Cut: head.From - 1}
	if x.log.Head, err = hex.DecodeString(tail.Last); err != nil || tail.Count < 0 {
		return fmt.Errorf("%w: the trailer makes no sense", ErrExport)
	}
	if x.log.Cut > 0 {
		x.log.CutHash = hash
	}
	x.last = x.log.Cut + x.left + missing
	if _, err := x.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the export again: %w", err)
	}
	x.lines.Reset(x.file)
	_, err = x.line(nil)
	return err
}

// strict reads a line that has no other fields.
func strict(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func (x *exported) Logs(context.Context) ([]*rows.AuditLog, error) {
	l := x.log
	return []*rows.AuditLog{&l}, nil
}

func (x *exported) Last(context.Context, int64) (int64, error) { return x.last, nil }

// Records gives the next records of the file, whatever their numbers are.
func (x *exported) Records(_ context.Context, _, _ int64, limit int, yield func(r *Stored) error) error {
	var line []byte
	for ; x.left > 0 && limit > 0; x.left, limit = x.left-1, limit-1 {
		var err error
		if line, err = x.line(line); err != nil {
			return fmt.Errorf("read the export again: %w", err)
		}
		var e ExportRecord
		if err := strict(line, &e); err != nil {
			return fmt.Errorf("%w: a record: %w", ErrExport, err)
		}
		hash, err := hex.DecodeString(e.Hash)
		if err != nil {
			return fmt.Errorf("%w: the hash of record %d: %w", ErrExport, e.Seq, err)
		}
		s := Stored{Seq: e.Seq, Leaf: e.Leaf, Hash: hash, Values: make([]Value, len(e.Values))}
		for i, v := range e.Values {
			s.Values[i] = Value(v)
		}
		if err := yield(&s); err != nil {
			return err
		}
	}
	return nil
}

// Values gives none: records have theirs.
func (x *exported) Values(context.Context, int64, int64, int64, func(int64, Value) error) error {
	return nil
}

func (x *exported) Tile(context.Context, int64, int64, int64) ([]byte, error) { return nil, nil }

func (x *exported) Gaps(_ context.Context, _ int64, yield func(first, last int64, hash Hash) error) error {
	for _, g := range x.gaps {
		if err := yield(g.first, g.last, g.hash); err != nil {
			return err
		}
	}
	return nil
}

func (x *exported) Checkpoints(_ context.Context, _ string, size int64, limit int, yield func(c *rows.AuditCheckpoint) error) error {
	if x.note == "" || limit < 1 {
		return nil
	}
	c := rows.AuditCheckpoint{Origin: x.log.Origin, Size: max(x.log.Size, 1), Note: x.note}
	if parsed, err := ParseCheckpoint(x.note); err == nil {
		c.Size, c.Root = parsed.Size, parsed.Root[:]
	}
	if c.Size <= size {
		return nil
	}
	return yield(&c)
}
