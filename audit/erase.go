package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Erasure says which personal values are deleted. One of Person, Value and Record is set.
type Erasure struct {
	Person string      // values that name this address, in upper or lower case
	Value  string      // values that are this text
	Record holdfast.ID // all values of this record
	// DespiteHold also takes values of records that a hold keeps.
	DespiteHold bool
	DryRun      bool // only count
	Reason      string
	Actor       string
	// Uplink says that the node is a site: its central is told what goes of its own logs. The sites are told what goes of
	// the copies of their logs in any case.
	Uplink bool
}

// Erased counts what an erasure took.
type Erased struct {
	Records, Values int64
	Held            int64 // values that stay, because a hold keeps their records
}

// ErrHeld means that a hold was made during an erasure. What went before is on record.
var ErrHeld = errors.New("a hold was made meanwhile")

// Place is where a value stands.
type Place struct {
	Seq   int64  `json:"seq"`
	Field string `json:"field"`
}

// Step is some values of a log that go at once.
type Step struct {
	Places []Place
	Newest rows.Instant // the newest hold that was heeded
	Reason string
	Actor  string
	Tell   bool // the other end of the link has to erase them, too: see Sharing
}

// Eraser is what an erasure needs of a store.
type Eraser interface {
	ProofReader
	Holds
	// EraseValues deletes the values at some places of a log, notes whom to tell, and adds the entry of which the log
	// makes the record: all or nothing. It returns how many values were there. ErrHeld: a hold was made after s.Newest.
	EraseValues(ctx context.Context, log *rows.AuditLog, s *Step) (int64, error)
}

// eraseStep is how many values one record of an erasure names at most.
const eraseStep = 100

// Erase deletes personal values of the own logs and of the copies of others, as far as they are here. Each step is on record
// together with what it took; so after an error, or when the process died, the same call goes on. Records, hashes and
// checkpoints stay. ErrNotFound: there is no such record.
func Erase(ctx context.Context, from Eraser, e *Erasure) (sum Erased, err error) {
	logs, err := from.Logs(ctx)
	if err != nil {
		return sum, err
	}
	holds, err := from.Holds(ctx)
	if err != nil {
		return sum, err
	}
	x := &erasing{Erasure: e, from: from, holds: holds, newest: newestOf(holds)}
	if e.DespiteHold {
		x.holds, x.newest = nil, 1<<63-1
	}
	if e.Record != "" {
		f, err := from.Record(ctx, e.Record)
		if err != nil {
			return sum, err
		}
		log, err := logOf(logs, f.Origin)
		if err == nil {
			err = x.walk(ctx, log, f.Seq-1, f.Seq)
		}
		return x.sum, err
	}
	for _, log := range logs {
		if err := x.walk(ctx, log, log.Cut, log.Size); err != nil {
			return x.sum, fmt.Errorf("erase values of %s: %w", log.Origin, err)
		}
	}
	return x.sum, nil
}

// erasing is one call of Erase.
type erasing struct {
	*Erasure

	from   Eraser
	holds  []Hold
	newest rows.Instant
	sum    Erased

	log, seq int64 // of the last value that went
}

// walk erases the values of records after one number and up to another.
func (x *erasing) walk(ctx context.Context, log *rows.AuditLog, after, last int64) error {
	for ; after < last; after += verifyPage {
		values := map[int64][]Value{}
		if err := x.from.Values(ctx, log.Log, after+1, min(after+verifyPage, last), func(seq int64, v Value) error {
			values[seq] = append(values[seq], v)
			return nil
		}); err != nil {
			return err
		}
		var places []Place
		for seq, list := range values {
			some, err := x.chosen(ctx, log, seq, list)
			if err != nil {
				return err
			}
			places = append(places, some...)
		}
		slices.SortFunc(places, func(a, b Place) int { return int(a.Seq - b.Seq) })
		for step := range slices.Chunk(places, eraseStep) {
			if err := x.take(ctx, log, step); err != nil {
				return err
			}
		}
	}
	return nil
}

// chosen returns which values of a record go.
func (x *erasing) chosen(ctx context.Context, log *rows.AuditLog, seq int64, list []Value) (places []Place, err error) {
	for i := range list {
		if x.Record != "" || x.Value != "" && list[i].Text == x.Value || x.Person != "" && Names(list[i].Text, x.Person) {
			places = append(places, Place{seq, list[i].Field})
		}
	}
	if len(places) == 0 || len(x.holds) == 0 {
		return places, nil
	}
	_, held, err := heldRecord(ctx, x.from, log, seq, list, x.holds)
	if held {
		x.sum.Held += int64(len(places))
		places = nil
	}
	return places, err
}

// heldRecord reports whether a record is here, and whether a hold selects it. values are those that stand beside it.
func heldRecord(ctx context.Context, from ProofReader, log *rows.AuditLog, seq int64, values []Value, holds []Hold) (here, held bool, err error) {
	err = from.Records(ctx, log.Log, seq-1, 1, func(s *Stored) error {
		if here = s.Seq == seq; !here {
			return nil
		}
		r, err := Read(s.Leaf, values)
		r.Site = SiteOf(log, r.Site)
		held = selectsAny(holds, &r)
		return err
	})
	return here, held, err
}

// take erases a step.
func (x *erasing) take(ctx context.Context, log *rows.AuditLog, places []Place) error {
	n := int64(len(places))
	if !x.DryRun {
		var err error
		s := Step{Places: places, Newest: x.newest, Reason: x.Reason, Actor: x.Actor, Tell: !log.Own || x.Uplink}
		if n, err = x.from.EraseValues(ctx, log, &s); err != nil {
			return err
		}
	}
	x.sum.Values += n
	for _, p := range places {
		if x.log != log.Log || x.seq != p.Seq {
			x.sum.Records++
		}
		x.log, x.seq = log.Log, p.Seq
	}
	return nil
}

// plain returns a text without the escapes of JSON, which may stand beside an address.
func plain(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ", `\b`, " ", `\f`, " ", `\"`, " ", `\/`, "/", `\\`, " ").Replace(text)
}

// Names reports whether a text names an address, in upper or lower case: the address stands there, and not as a part of
// a longer one.
func Names(text, address string) bool {
	text, address = strings.ToLower(plain(text)), strings.ToLower(address)
	for at := 0; address != ""; at++ {
		i := strings.Index(text[at:], address)
		if i < 0 {
			return false
		}
		at += i
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		end := text[at+len(address):]
		after, n := utf8.DecodeRuneInString(end)
		if after == '.' { // of a sentence, or of a longer name
			after, _ = utf8.DecodeRuneInString(end[n:])
		}
		quoted := before == '\'' && after == '\''
		if quoted || !inName(before) && !strings.ContainsRune("._%+-'", before) && !inName(after) && after != '-' && after != '_' {
			return true
		}
	}
	return false
}

// inName reports whether a rune can be next to another one within an address. Where a text begins or ends there is none.
func inName(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
