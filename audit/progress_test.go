package audit_test

import (
	"context"
	"testing"

	"github.com/holdfast-mq/holdfast/audit"
)

// counted is a Reader that counts the records that it gives.
type counted struct {
	audit.Reader

	records int
}

func (c *counted) Records(ctx context.Context, log, after int64, limit int, yield func(r *audit.Stored) error) error {
	return c.Reader.Records(ctx, log, after, limit, func(r *audit.Stored) error {
		c.records++
		return yield(r)
	})
}

// A verification that goes on where the last one has ended reads what is new, and finds what is wrong there. After a fault it
// begins again.
func TestAVerificationGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.Progress = &audit.Progress{}
	verify := func(from audit.Reader, want audit.Verdict, atMost int) audit.LogReport {
		t.Helper()
		c := &counted{Reader: from}
		report, err := audit.Verify(t.Context(), c, o)
		if err != nil || report.Status != want || len(report.Logs) != 1 || c.records > atMost {
			t.Fatalf("%+v, %v, after %d records; want %s and %d at most", report, err, c.records, want, atMost)
		}
		return report.Logs[0]
	}
	origin := ""
	for _, n := range []int{255, 1, 0, 700, 1600} {
		r.grow(n)
		got := verify(r.log.Store, audit.Intact, n+2) // the first record of the log, and at the end of a page the next one
		origin = got.Origin
		if size := r.size(); got.Size != size || got.Anchored != size || got.Witnessed != size || o.Progress.Verified(origin) != size {
			t.Errorf("%+v, and %d verified; want all %d", got, o.Progress.Verified(origin), size)
		}
	}
	before := r.shelf()
	r.grow(300)
	for name, seq := range map[string]int64{"change": before.log.Size + 20, "delete": before.log.Size + 1, "cut tail": before.log.Size - 5, "forge": before.log.Size + 7} {
		s := r.shelf()
		tamperings[name].do(s, seq)
		o.Witness = nil // which has a later checkpoint
		verify(before, audit.Intact, 10_000)
		o.Witness = r.log.Witness
		if got := verify(s, audit.Broken, 10_000); got.Fault == "" {
			t.Errorf("%s: %+v", name, got)
		}
		if n := o.Progress.Verified(origin); n != 0 {
			t.Errorf("%s: the next verification begins after %d records", name, n)
		}
	}
	verify(r.log.Store, audit.Intact, 10_000)
}

// signing is a Reader of a log that grows, and is signed, while it is read.
type signing struct {
	audit.Reader

	grow func()
}

func (s *signing) Records(ctx context.Context, log, after int64, limit int, yield func(r *audit.Stored) error) error {
	if s.grow != nil {
		s.grow()
		s.grow = nil
	}
	return s.Reader.Records(ctx, log, after, limit, yield)
}

// A checkpoint that is signed while the log is verified is no sign of a cut.
func TestALogMayGrowWhileItIsVerified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grow(10)
	report, err := audit.Verify(t.Context(), &signing{r.log.Store, func() { r.grow(5) }}, r.options())
	if err != nil || report.Status != audit.Intact {
		t.Errorf("%+v, %v", report, err)
	}
}
