package audit

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// Fault is what was done to a log.
type Fault string

// The faults.
const (
	Changed     Fault = "changed"      // a record, a value or a column
	Inserted    Fault = "inserted"     // a record
	Removed     Fault = "removed"      // records
	HeadCut     Fault = "head cut"     // the first records are gone, and no purge says so
	TailCut     Fault = "tail cut"     // the last records are gone
	Replaced    Fault = "replaced"     // records by others that fit together, but not what was signed
	PurgeForged Fault = "purge forged" // no signed record names the purge
)

// Verdict is the result of a verification.
type Verdict string

// The results.
const (
	Intact     Verdict = "intact"
	Unanchored Verdict = "unanchored" // intact, but not covered by a checkpoint, or with a gap on record
	Broken     Verdict = "broken"
)

// anchorsLate is how old records without a checkpoint may be.
const anchorsLate = 5 * time.Minute

// VerifyOptions is what a verification goes by besides the logs.
type VerifyOptions struct {
	// Keys are those that checkpoints are believed by. Keys to which one of them has handed over are
	// believed as well. None: every key is believed, and the result is Unanchored at best.
	Keys []Public
	// Witness has checkpoints that are not in the store. Nil: there is none.
	Witness Notes
	Origin  string    // verify only this log; empty: all
	Now     time.Time // zero: time.Now
	// Progress is what earlier verifications have read, which this one does not read again. Nil: it reads
	// everything.
	Progress *Progress
}

// Report is what a verification found.
type Report struct {
	Status Verdict     `json:"status"`
	Logs   []LogReport `json:"logs"`
}

// LogReport is what it found in one log.
type LogReport struct {
	Origin string  `json:"origin"`
	Own    bool    `json:"own"`
	Status Verdict `json:"status"`
	First  int64   `json:"first"` // the first record that stands
	Size   int64   `json:"size"`  // number of the last record
	Fault  Fault   `json:"fault,omitempty"`
	Seq    int64   `json:"seq,omitempty"` // first record at fault
	Detail string  `json:"detail,omitempty"`
	// Anchored is the number of records that believed checkpoints cover, the last of which was made at
	// AnchoredAt.
	Anchored   int64     `json:"anchored"`
	AnchoredAt time.Time `json:"anchoredAt,omitzero"`
	// Witnessed is the number of records that checkpoints cover that a witness has, the last of which was made at
	// WitnessedAt.
	Witnessed   int64     `json:"witnessed,omitempty"`
	WitnessedAt time.Time `json:"witnessedAt,omitzero"`
	Key         string    `json:"key,omitempty"`     // verifier key that has signed the last of them
	Erased      int64     `json:"erased,omitempty"`  // values
	Missing     int64     `json:"missing,omitempty"` // records that a copy lacks, or that are lost on record
	// Unrecorded is calls that have no record, or may have none, as records of the kind Gap say. Nil: no such record stands.
	Unrecorded *Missed `json:"unrecorded,omitempty"`
	// Record is the record that a proof is about, as it is stored.
	Record []byte `json:"record,omitempty"`
}

// verification is one call of Verify.
type verification struct {
	VerifyOptions

	from     Reader
	exported bool // an export of one log, which has no tree
	copy     bool // an export of a copy of another node's log
	logs     []*rows.AuditLog
	cuts     map[int64]int64   // how far each log was cut when the verification began
	marks    map[string][]mark // of the witness, by origin
	trusted  map[Public]bool
	handed   []string // checkpoints by which keys handed over, besides those of the witness
	purge    *Proof   // of the record that says how far an export's log was purged
	purges   map[string][]purged
	anchored map[string]int64 // records of own logs that believed checkpoints cover
	formers  map[string]Former
	vouched  map[string]map[Public]bool  // keys that count for a former log, since a signed record names a checkpoint of theirs
	copies   map[string]LogReport        // faults of copies that the own log shows
	newest   *walk                       // of the newest own log
	erasing  map[string]map[string]int64 // values that the records of own logs say were erased, by that log and the log that had them
}

// mark is a checkpoint, in short.
type mark struct {
	size  int64
	root  Hash
	chain Hash
	keys  []Public
	at    time.Time
	out   bool // a witness has it
}

// Verify reads logs and says whether they are what was once written and signed: chains, leaves, values,
// columns, trees, checkpoints, purges, and what one log says of another. Its memory does not grow with the
// logs. An error means that it could not read, and says nothing about them.
func Verify(ctx context.Context, from Reader, o VerifyOptions) (Report, error) {
	return verify(ctx, from, &verification{VerifyOptions: o})
}

// errPurging means that a purge went on for as long as the verification did.
var errPurging = errors.New("records are being purged; verify again later")

// verify reads the logs until no purge is in the way: its record may have come after that log was read.
func verify(ctx context.Context, from Reader, v *verification) (r Report, err error) {
	for range 3 {
		if r, err = v.pass(ctx, from); !errors.Is(err, errPurging) {
			break
		}
	}
	return r, err
}

func (v *verification) pass(ctx context.Context, from Reader) (r Report, err error) {
	if v.Now.IsZero() {
		v.Now = time.Now()
	}
	v.from, v.marks, v.purges = from, map[string][]mark{}, map[string][]purged{}
	v.formers, v.copies, v.erasing, v.anchored = map[string]Former{}, map[string]LogReport{}, map[string]map[string]int64{}, map[string]int64{}
	v.vouched = map[string]map[Public]bool{}
	if p := v.Progress; p != nil {
		p.begin(v)
		defer func() {
			if err != nil {
				p.end(v, nil)
				return
			}
			p.end(v, &r)
		}()
	}
	if err := v.readWitness(); err != nil {
		return Report{}, err
	}
	if v.logs, err = from.Logs(ctx); err != nil {
		return Report{}, fmt.Errorf("read logs: %w", err)
	}
	if err := v.believe(ctx); err != nil {
		return Report{}, err
	}
	v.cuts = map[int64]int64{}
	for _, l := range v.logs {
		v.cuts[l.Log] = l.Cut
	}
	// The newest own log first: it says what became of the former ones and of the copies.
	slices.SortStableFunc(v.logs, func(a, b *rows.AuditLog) int {
		if a.Own != b.Own {
			return map[bool]int{true: -1, false: 1}[a.Own]
		}
		return cmp.Compare(b.Log, a.Log)
	})
	r.Status = Intact
	for _, l := range v.logs {
		if v.Origin != "" && v.Origin != l.Origin && !l.Own {
			continue
		}
		one, err := v.log(ctx, l.Log)
		if err != nil {
			return Report{}, fmt.Errorf("verify %s: %w", l.Origin, err)
		}
		if v.Origin == "" || v.Origin == l.Origin {
			r.Logs = append(r.Logs, one)
		}
	}
	if err := v.valuesGone(ctx, r.Logs); err != nil {
		return Report{}, err
	}
	unrecorded(r.Logs)
	if !v.exported {
		r.Logs = append(r.Logs, v.gone()...)
	}
	for _, l := range r.Logs {
		if l.Status == Broken || r.Status == Intact {
			r.Status = l.Status
		}
	}
	return r, nil
}

// believe finds out which keys are believed.
func (v *verification) believe(ctx context.Context) error {
	for _, l := range v.logs {
		if !v.exported && l.Own && len(v.Keys) > 0 {
			if err := v.handOvers(ctx, l.Origin); err != nil {
				return err
			}
		}
	}
	handed := keysOf(v.handed)
	for _, list := range v.marks {
		for _, m := range list {
			if len(m.keys) > 1 {
				handed = append(handed, m.keys)
			}
		}
	}
	v.trusted = believed(v.Keys, handed)
	return nil
}

// handOvers reads all checkpoints of a log, of which it keeps those by which keys handed over.
func (v *verification) handOvers(ctx context.Context, origin string) error {
	const some = 1000
	for size, n := int64(-1), some; n == some; {
		n = 0
		if err := v.from.Checkpoints(ctx, origin, size, some, func(c *rows.AuditCheckpoint) error {
			if size, n = c.Size, n+1; HandsOver(c.Note) {
				v.handed = append(v.handed, c.Note)
			}
			return nil
		}); err != nil {
			return fmt.Errorf("read the checkpoints of %s: %w", origin, err)
		}
	}
	return nil
}

func (v *verification) readWitness() error {
	if v.Witness == nil {
		return nil
	}
	if err := v.Witness.Each(func(text string) error {
		if c, err := ParseCheckpoint(text); err == nil {
			v.marks[c.Origin] = append(v.marks[c.Origin], markOf(&c))
		}
		return nil
	}); err != nil {
		return fmt.Errorf("read witness: %w", err)
	}
	for _, list := range v.marks {
		slices.SortStableFunc(list, func(a, b mark) int { return cmp.Compare(a.size, b.size) })
	}
	return nil
}

func markOf(c *Checkpoint) mark { return mark{c.Size, c.Root, c.Chain, c.Keys, c.Time, false} }

// gone reports logs of which the store has nothing, though its own log says that it took records of them, or
// the witness knows them and the store has others of the same node.
func (v *verification) gone() (list []LogReport) {
	for origin, c := range v.copies {
		if c.Status == Broken && (v.Origin == "" || v.Origin == origin) { // the others are reported with their logs
			list = append(list, c)
		}
	}
	for origin, marks := range v.marks {
		node := origin[:strings.LastIndexByte(origin, '/')+1]
		same := slices.ContainsFunc(v.logs, func(l *rows.AuditLog) bool { return l.Own && strings.HasPrefix(l.Origin, node) })
		known := slices.ContainsFunc(v.logs, func(l *rows.AuditLog) bool { return l.Origin == origin })
		if _, told := v.formers[origin]; !same || known || told || v.Origin != "" || !slices.ContainsFunc(marks, v.believes) {
			continue
		}
		last := marks[len(marks)-1]
		list = append(list, LogReport{
			Origin: origin, Status: Broken, Fault: Replaced, Seq: 1, Anchored: last.size, AnchoredAt: last.at,
			Detail: "the witness has checkpoints of this log, and the store has nothing of it",
		})
	}
	return list
}

func (v *verification) believes(m mark) bool {
	return len(v.trusted) == 0 || slices.ContainsFunc(m.keys, func(k Public) bool { return v.trusted[k] })
}

// log verifies one log. Where records were purged meanwhile it begins again. errPurging: all logs must be read again.
func (v *verification) log(ctx context.Context, number int64) (r LogReport, err error) {
	for range 3 {
		// What stands first, then what should: the node may append meanwhile.
		last, err := v.from.Last(ctx, number)
		if err != nil {
			return r, err
		}
		l, err := v.row(ctx, number)
		if err != nil {
			return r, err
		}
		w := &walk{verification: v, log: l, report: LogReport{Origin: l.Origin, Own: l.Own, Status: Intact, First: l.Cut + 1, Size: l.Size}, seen: map[Public]*signed{}, erased: map[string]int64{}}
		if err := w.run(ctx, last); err != nil && !errors.Is(err, errFault) {
			return r, err
		}
		r = w.report
		again, err := v.row(ctx, number)
		if err != nil {
			return r, err
		}
		switch {
		case r.Fault == PurgeForged && l.Cut > v.cuts[number]:
			return r, errPurging
		case r.Fault == "" || again.Cut == l.Cut:
			return r, nil
		}
	}
	return r, errPurging
}

func (v *verification) row(ctx context.Context, number int64) (*rows.AuditLog, error) {
	logs, err := v.from.Logs(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(logs, func(l *rows.AuditLog) bool { return l.Log == number })
	if i < 0 {
		return nil, fmt.Errorf("log %d is gone: %w", number, ErrTree)
	}
	return logs[i], nil
}

// aboutLogs reports whether a record of this kind says something about logs. Another node's log says nothing of what stands here.
func aboutLogs(k Kind) bool { return k == Purged || k == Opened || k == EraseKind || k == Copied }

// special notes what a record says about logs.
func (w *walk) special(ctx context.Context, seq int64, r *Record) error {
	switch r.Kind { //nolint:exhaustive // the others say nothing about logs
	case Purged:
		var p purged
		if json.Unmarshal(r.Extra, &p) == nil {
			p.by, p.at = w.log.Origin, seq
			w.purged = append(w.purged, p)
		}
	case Opened:
		var f Former
		if json.Unmarshal(r.Extra, &f) == nil && f.Origin != "" {
			f.by, f.at = w.log.Origin, seq
			w.formers[f.Origin] = f
		}
	case Gap:
		var m Missed
		if json.Unmarshal(r.Extra, &m) == nil {
			w.report.Unrecorded = m.with(w.report.Unrecorded)
		}
	case EraseKind:
		var d Decision
		if json.Unmarshal(r.Extra, &d) == nil {
			w.erased[d.Log] += d.Values
		}
	case Copied:
		var c batch
		if !w.exported && json.Unmarshal(r.Extra, &c) == nil {
			return w.copied(ctx, c)
		}
	}
	return nil
}

// with returns both together. The other may be nil.
func (m Missed) with(other *Missed) *Missed {
	if other != nil {
		if m.Calls += other.Calls; other.Since.Before(m.Since) {
			m.Since = other.Since
		}
		if other.Until.After(m.Until) {
			m.Until = other.Until
		}
	}
	return &m
}

// unrecorded says of which calls logs lack records, by a record of theirs. That stays so until that record is purged.
func unrecorded(list []LogReport) {
	for i := range list {
		r := &list[i]
		if m := r.Unrecorded; m != nil && r.Status != Broken {
			text := fmt.Sprintf("%d calls from %s to %s have no record, or may have none, and the log says so", m.Calls, m.Since.UTC().Format(time.RFC3339), m.Until.UTC().Format(time.RFC3339))
			if r.Detail != "" {
				text = r.Detail + "; " + text
			}
			r.Status, r.Detail = Unanchored, text
		}
	}
}

// batch is the Extra of a record of the kind Copied.
type batch struct {
	Log   string `json:"log"`
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Hash  string `json:"hash"` // chain hash of the last record, hex
}

// copied compares what the own log says of a copy with the copy.
func (w *walk) copied(ctx context.Context, c batch) error {
	if _, known := w.copies[c.Log]; known || c.Log == "" {
		return nil
	}
	r, err := w.compare(ctx, c)
	if err == nil && r.Fault != "" { // unless it came, or was purged, after the logs were read
		if w.logs, err = w.from.Logs(ctx); err == nil {
			r, err = w.compare(ctx, c)
		}
	}
	if err == nil && r.Fault != "" {
		w.copies[c.Log] = r
	}
	return err
}

func (w *walk) compare(ctx context.Context, c batch) (r LogReport, err error) {
	i := slices.IndexFunc(w.logs, func(l *rows.AuditLog) bool { return l.Origin == c.Log })
	if i < 0 {
		return LogReport{Origin: c.Log, Status: Broken, Fault: Replaced, Seq: 1, Detail: "this store has taken records of the log, and has nothing of it"}, nil
	}
	if c.Last <= w.logs[i].Cut {
		return r, nil
	}
	found := ""
	err = w.from.Records(ctx, w.logs[i].Log, c.Last-1, 1, func(s *Stored) error {
		if s.Seq == c.Last {
			found = hex.EncodeToString(s.Hash)
		}
		return nil
	})
	switch {
	case err != nil:
	case found == "":
		r = LogReport{Fault: Removed, Seq: c.Last, Detail: "this store has taken the record, and does not have it"}
	case found != c.Hash:
		r = LogReport{Fault: Replaced, Seq: c.Last, Detail: "the record is not the one that this store has taken"}
	}
	return r, err
}
