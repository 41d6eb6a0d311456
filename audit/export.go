package audit

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Exporter writes the records that a log has at one moment. It reads them page by page, however many
// there are.
//
// As JSON Lines it can be verified without the store: the first line is an ExportHeader, the last one
// an ExportTrailer, and each line between them an ExportRecord. A filtered export says so in its
// header: its records can be verified one by one, but not that none is left out.
//
// As CSV (RFC 4180) it is for tables. A cell that a table would take for a formula begins with an
// apostrophe. The last row has the number of records and the last hash.
type Exporter struct {
	Reader ProofReader
	Filter Filter
	CSV    bool

	log    *rows.AuditLog
	newest *rows.AuditCheckpoint // covers no more than the export has
	handed []string
	gaps   []gap
	purge  *Proof
}

// ExportHeader is the first line of an export.
type ExportHeader struct {
	Version int     `json:"holdfast-audit"` // 1
	Origin  string  `json:"origin"`
	From    int64   `json:"from"`           // number of the first record that the log has
	Before  string  `json:"before"`         // chain hash before it, hex
	Copy    bool    `json:"copy,omitempty"` // another node's log: only its export may have gaps
	Filter  *Filter `json:"filter,omitempty"`
}

// ExportRecord is a line of an export.
type ExportRecord struct {
	Seq    int64           `json:"seq"`
	Hash   string          `json:"hash"` // chain hash, hex
	Values []ExportValue   `json:"values,omitempty"`
	Leaf   json.RawMessage `json:"leaf"` // as it is stored
}

// ExportValue is a personal value of a record.
type ExportValue struct {
	Field string `json:"field"`
	Salt  []byte `json:"salt"`
	Text  string `json:"text"`
}

// ExportTrailer is the last line of an export.
type ExportTrailer struct {
	Count      int64  `json:"count"`
	Last       string `json:"last"`                 // chain hash of the last record, hex
	Checkpoint string `json:"checkpoint,omitempty"` // the newest signed one
	// HandOvers are the checkpoints by which the log's keys handed over to the next, the oldest first.
	HandOvers []string `json:"handOvers,omitempty"`
	// Gaps are the records that a copy of another node's log lacked.
	Gaps []ExportGap `json:"gaps,omitempty"`
	// Purge proves the record that says that the records before the first one were purged. It may stand in another log.
	Purge *Proof `json:"purge,omitempty"`
}

// ExportGap is a range of records that are missing.
type ExportGap struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Hash  string `json:"hash"` // of the chain at the last of them, hex
}

// exportPage is how many records are read at once.
const exportPage = 250

// Begin fixes what is exported: the log with this name, or the newest one that the store appends to, as
// far as it has come. ErrNotFound: there is none.
func (x *Exporter) Begin(ctx context.Context, origin string) error {
	if err := x.find(ctx, origin); err != nil {
		return err
	}
	var err error
	if x.newest, err = x.Reader.Newest(ctx, x.log.Origin); err != nil {
		return fmt.Errorf("export %s: read its checkpoint: %w", x.log.Origin, err)
	}
	if err := x.find(ctx, x.log.Origin); err != nil { // it may have grown, together with its checkpoints
		return err
	}
	logs, err := x.Reader.Logs(ctx)
	if err == nil {
		x.handed, err = handOvers(ctx, x.Reader, logs)
	}
	if err == nil && !x.log.Own {
		var copied []string
		copied, err = x.Reader.HandOvers(ctx, x.log.Origin)
		x.handed = append(x.handed, copied...)
	}
	if err == nil && !x.log.Own {
		err = x.readGaps(ctx)
	}
	if err == nil && x.log.Cut > 0 && !x.CSV {
		x.purge, err = provePurge(ctx, x.Reader, logs, x.log)
	}
	return err
}

// provePurge proves the record that says how far a log was purged; nil: there is none that is signed.
func provePurge(ctx context.Context, from ProofReader, logs []*rows.AuditLog, log *rows.AuditLog) (*Proof, error) {
	q := Query{Filter: Filter{Target: log.Origin, Kind: Purged}, Limit: MaxPage}
	for more := true; more; more = q.After != "" {
		page, err := from.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Records {
			f := &page.Records[i]
			if l, err := logOf(logs, f.Origin); err != nil || !l.Own || !f.purges(log) {
				continue
			}
			p, err := Prove(ctx, from, f)
			if errors.Is(err, ErrNotSigned) {
				return nil, nil
			}
			return &p, err
		}
		q.After = page.Next
	}
	return nil, nil
}

// purges reports whether a record says that a log was purged up to where it is.
func (r *Record) purges(log *rows.AuditLog) bool {
	var p purged
	return r.Kind == Purged && json.Unmarshal(r.Extra, &p) == nil && p.Log == log.Origin && p.Last == log.Cut && p.Hash == hex.EncodeToString(log.CutHash)
}

func (x *Exporter) find(ctx context.Context, origin string) error {
	logs, err := x.Reader.Logs(ctx)
	if err != nil {
		return err
	}
	for _, l := range logs {
		if l.Origin == origin || origin == "" && l.Own {
			x.log = l
		}
	}
	if x.log == nil {
		return fmt.Errorf("audit log %q: %w", origin, holdfast.ErrNotFound)
	}
	return nil
}

// Origin returns the name of the log.
func (x *Exporter) Origin() string { return x.log.Origin }

// Until returns the number of the last record.
func (x *Exporter) Until() int64 { return x.log.Size }

// Write writes the export. Begin was called before.
func (x *Exporter) Write(ctx context.Context, w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	out := form(&lines{json.NewEncoder(b)})
	if x.CSV {
		c := csv.NewWriter(b)
		c.UseCRLF = true
		out = &table{c}
	} else {
		out.(*lines).SetEscapeHTML(false) //nolint:forcetypeassert // made above
	}
	head := ExportHeader{Version: 1, Origin: x.log.Origin, From: x.log.Cut + 1, Before: hex.EncodeToString(x.log.CutHash), Copy: !x.log.Own}
	if x.log.Cut == 0 {
		head.Before = strings.Repeat("0", 2*len(Hash{}))
	}
	if x.Filter != (Filter{}) {
		head.Filter = &x.Filter
	}
	err := out.head(&head)
	tail := ExportTrailer{Last: head.Before}
	for after := x.log.Cut; err == nil && after < x.log.Size; {
		var page []Stored
		if page, err = x.page(ctx, after); err == nil && (len(page) == 0 || page[0].Seq != after+1) {
			err = x.whole(ctx, after)
		}
		if err != nil || len(page) == 0 {
			break
		}
		for i := range page {
			if page[i].Seq > after+1 {
				if err = x.hole(ctx, after+1, page[i].Seq-1, &tail); err != nil {
					break
				}
			}
			if err = x.one(out, &page[i], &tail); err != nil {
				break
			}
			after = page[i].Seq
		}
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", x.log.Origin, err)
	}
	if x.newest != nil {
		tail.Checkpoint = x.newest.Note
	}
	tail.HandOvers, tail.Purge = x.handed, x.purge
	if err := out.tail(&tail); err != nil {
		return err
	}
	return b.Flush()
}

// page returns the next records with their values.
func (x *Exporter) page(ctx context.Context, after int64) (list []Stored, err error) {
	if err := x.Reader.Records(ctx, x.log.Log, after, exportPage, func(r *Stored) error {
		if r.Seq <= x.log.Size {
			list = append(list, Stored{Seq: r.Seq, Leaf: slices.Clone(r.Leaf), Hash: slices.Clone(r.Hash)})
		}
		return nil
	}); err != nil || len(list) == 0 {
		return nil, err
	}
	err = x.Reader.Values(ctx, x.log.Log, list[0].Seq, list[len(list)-1].Seq, func(seq int64, v Value) error {
		if i, ok := slices.BinarySearchFunc(list, seq, func(r Stored, seq int64) int { return int(r.Seq - seq) }); ok {
			list[i].Values = append(list[i].Values, v)
		}
		return nil
	})
	return list, err
}

// whole refuses to go on if records that follow a number were purged since the export began: it would have a hole.
func (x *Exporter) whole(ctx context.Context, after int64) error {
	logs, err := x.Reader.Logs(ctx)
	for _, l := range logs {
		if l.Log == x.log.Log && l.Cut > after {
			return fmt.Errorf("the records up to %d were purged meanwhile; export again", l.Cut)
		}
	}
	return err
}

// hole adds to the trailer that the copy lacks these records. Some of what it lacked when the export began may have come since.
func (x *Exporter) hole(ctx context.Context, first, last int64, tail *ExportTrailer) error {
	for range 2 {
		for _, g := range x.gaps {
			if g.first <= first && last == g.last {
				tail.Gaps = append(tail.Gaps, ExportGap{first, last, hex.EncodeToString(g.hash[:])})
				return nil
			}
		}
		if x.log.Own {
			break
		}
		if err := x.readGaps(ctx); err != nil {
			return err
		}
	}
	return nil // whoever verifies finds it
}

// readGaps adds what the copy lacks now.
func (x *Exporter) readGaps(ctx context.Context) error {
	return x.Reader.Gaps(ctx, x.log.Log, func(first, last int64, hash Hash) error {
		x.gaps = append(x.gaps, gap{first, last, hash})
		return nil
	})
}

func (x *Exporter) one(out form, s *Stored, tail *ExportTrailer) error {
	r, err := Read(s.Leaf, s.Values)
	r.Site = SiteOf(x.log, r.Site)
	if err != nil {
		if x.Filter != (Filter{}) || x.CSV {
			return fmt.Errorf("record %d: %w", s.Seq, err)
		}
	} else if !x.Filter.Match(&r) {
		return nil
	}
	tail.Count++
	tail.Last = hex.EncodeToString(s.Hash)
	return out.record(s, &r, x.log.Origin)
}

// form is a form of an export.
type form interface {
	head(h *ExportHeader) error
	record(s *Stored, r *Record, origin string) error
	tail(t *ExportTrailer) error
}

// lines is JSON Lines.
type lines struct{ *json.Encoder }

func (l *lines) head(h *ExportHeader) error { return l.Encode(h) }

func (l *lines) record(s *Stored, _ *Record, _ string) error {
	line := ExportRecord{Seq: s.Seq, Hash: hex.EncodeToString(s.Hash), Leaf: s.Leaf}
	for _, v := range s.Values {
		line.Values = append(line.Values, ExportValue(v))
	}
	return l.Encode(&line)
}

func (l *lines) tail(t *ExportTrailer) error { return l.Encode(t) }

// table is CSV.
type table struct{ *csv.Writer }

func (t *table) head(*ExportHeader) error {
	return t.Write([]string{
		"id", "occurred", "channel", "kind", "status", "correlationId", "executionId", "parentExecutionId", "traceId", "site", "node", "instance", "script",
		"actor", "target", "httpStatus", "durationMs", "error", "request", "response", "extra", "erased", "log", "seq", "hash",
	})
}

func (t *table) record(s *Stored, r *Record, origin string) error {
	cells := []string{
		string(r.ID), r.Occurred.UTC().Format(time.RFC3339Nano), string(r.Channel), string(r.Kind), string(r.Status), r.Correlation, r.Execution, r.Parent, r.Trace,
		r.Site, r.Node, r.Instance, r.Script, r.Actor, r.Target, "", "", r.Error, r.Request, r.Response, string(r.Extra), strings.Join(r.Erased, " "),
		origin, strconv.FormatInt(s.Seq, 10), hex.EncodeToString(s.Hash),
	}
	if r.HTTP != 0 {
		cells[15] = strconv.Itoa(r.HTTP)
	}
	if r.Took != 0 {
		cells[16] = strconv.FormatFloat(float64(r.Took.Microseconds())/1000, 'f', -1, 64)
	}
	for i, cell := range cells {
		cells[i] = harmless(cell)
	}
	return t.Write(cells)
}

// harmless returns a cell that no table takes for a formula.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func (t *table) tail(e *ExportTrailer) error {
	cells := make([]string, 25)
	cells[0], cells[1], cells[24] = "records", strconv.FormatInt(e.Count, 10), e.Last
	if err := t.Write(cells); err != nil {
		return err
	}
	t.Flush()
	return t.Error()
}
