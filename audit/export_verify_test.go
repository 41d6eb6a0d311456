package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/audit/audittest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/rows"
)

// Newest makes a shelf something that can be exported.
func (s *shelf) Newest(context.Context, string) (c *rows.AuditCheckpoint, err error) {
	for _, c = range s.checkpoints { // the last one
	}
	return c, nil
}

// HandOvers is for the same.
func (s *shelf) HandOvers(context.Context, string) (list []string, err error) {
	for _, c := range s.checkpoints {
		if audit.HandsOver(c.Note) {
			list = append(list, c.Note)
		}
	}
	return list, nil
}

type queries interface{ audit.Records }

// Query finds nothing.
func (s *shelf) Query(context.Context, audit.Query) (p audit.Page, err error) { return p, nil }

func (s *shelf) export(t *testing.T, f audit.Filter) []byte {
	t.Helper()
	var b bytes.Buffer
	x := &audit.Exporter{Reader: s, Filter: f}
	err := x.Begin(t.Context(), "")
	if err == nil {
		err = x.Write(t.Context(), &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A purge takes what a slow export has not read yet. The export must not look whole.
func TestAnExportThatAPurgeOvertakes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 30 {
		r.grow(20)
	}
	s := r.shelf()
	x := &audit.Exporter{Reader: s}
	if err := x.Begin(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	s.log.Cut, s.records = 400, s.records[400:]
	var b bytes.Buffer
	if err := x.Write(t.Context(), &b); err == nil || !strings.Contains(err.Error(), "purged meanwhile") {
		t.Errorf("got %v and %d bytes", err, b.Len())
	}
}

// Who knows the first key of a site verifies an export of central's copy.
func TestAnExportOfACopyHasItsHandOvers(t *testing.T) {
	t.Parallel()
	r, _ := keyed(t)
	first, origin := r.log.Key.Public(), must(r.log.Origin(t.Context()))
	r.grow(20)
	if _, _, err := r.log.Rotate(t.Context(), nil, "it is old", "anna"); err != nil {
		t.Fatal(err)
	}
	r.grow(5)
	s := r.shelf()
	s.log.Own = false
	x := &audit.Exporter{Reader: s}
	var b bytes.Buffer
	if err := errors.Join(x.Begin(t.Context(), origin), x.Write(t.Context(), &b)); err != nil {
		t.Fatal(err)
	}
	report, err := audit.VerifyExport(t.Context(), bytes.NewReader(b.Bytes()), audit.VerifyOptions{Keys: []audit.Public{first}})
	if err != nil || report.Status != audit.Intact || report.Logs[0].Anchored != r.size() {
		t.Errorf("%+v, %v", report, err)
	}
}

// both verifies an export twice, and reports what the first one says and whether the second one agrees.
func (r *rig) both(t *testing.T, file []byte, o audit.VerifyOptions) (audit.LogReport, bool) {
	t.Helper()
	report, err := audit.VerifyExport(t.Context(), bytes.NewReader(file), o)
	if err != nil || len(report.Logs) != 1 || report.Status != report.Logs[0].Status {
		t.Fatal(report, err)
	}
	one := report.Logs[0]
	var kept []string
	if o.Witness != nil {
		if err := o.Witness.Each(func(note string) error { kept = append(kept, note); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	err = audittest.Export(bytes.NewReader(file), r.log.Key.VerifierKey(one.Origin), kept...)
	if err != nil && !errors.Is(err, audittest.ErrBroken) {
		t.Fatal(err)
	}
	if (err != nil) != (one.Status == audit.Broken) {
		t.Logf("the first says %+v, the second %v", one, err)
		return one, false
	}
	return one, true
}

// Two verifiers that share no line find each tampering in an export.
func TestTamperingIsFoundInAnExport(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "one goroutine reads hundreds of exports")
	r := newRig(t)
	for _, n := range []int{255, 45, 300} {
		r.grow(n)
	}
	whole := r.shelf()
	size := whole.log.Size
	file := whole.export(t, audit.Filter{})
	if got, agree := r.both(t, file, r.options()); got.Status != audit.Intact || got.Anchored != size || !agree {
		t.Fatalf("before: %+v", got)
	}
	for name, c := range tamperings {
		for _, seq := range []int64{1, 2, 254, 255, 256, 257, 300, 301, 512, size - 1, size} {
			s := whole.clone()
			c.do(s, seq)
			got, agree := r.both(t, s.export(t, audit.Filter{}), r.options())
			if got.Status != audit.Broken || !agree {
				t.Errorf("%s at %d of %d: %+v", name, seq, size, got)
			}
		}
	}
	changed := bytes.Replace(file, []byte(`"text":"target-7"`), []byte(`"text":"target-8"`), 1)
	if got, agree := r.both(t, changed, r.options()); got.Fault != audit.Changed || !agree {
		t.Errorf("a value: %+v", got)
	}
}

// An export proves nothing without a key, nor without a checkpoint of what it has.
func TestAnExportIsNotAnchoredByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grow(20)
	s := r.shelf()
	file := s.export(t, audit.Filter{})
	if got, _ := r.both(t, file, audit.VerifyOptions{}); got.Status != audit.Unanchored {
		t.Errorf("without a key: %+v", got)
	}
	s.checkpoints = nil
	if got, _ := r.both(t, s.export(t, audit.Filter{}), audit.VerifyOptions{Keys: r.options().Keys}); got.Status != audit.Unanchored {
		t.Errorf("without a checkpoint: %+v", got)
	}
	end := bytes.LastIndexByte(file[:len(file)-1], '\n') + 1
	for name, bad := range map[string][]byte{
		"nothing": nil, "one line": file[:bytes.IndexByte(file, '\n')+1], "no trailer": file[:end], "half a trailer": file[:end+10],
		"a filtered export": r.shelf().export(t, audit.Filter{Actor: "anna"}), "no header": file[bytes.IndexByte(file, '\n')+1:],
		"a record that is none": bytes.Replace(file, []byte(`{"seq":7,`), []byte(`{"other":7,`), 1),
	} {
		if _, err := audit.VerifyExport(t.Context(), bytes.NewReader(bad), r.options()); !errors.Is(err, audit.ErrExport) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Calls that could not be recorded are a gap that verification dates, of a log, the next time too, and of an export; what else
// is wrong comes first.
func TestCallsThatCouldNotBeRecordedAreAGapOfTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, calls := range []int64{3, 4} {
		at := time.Date(2026, 11, 28, 6, i, 0, 0, time.UTC)
		detail := must(json.Marshal(audit.Missed{Calls: calls, Since: at, Until: at.Add(time.Second)}))
		if err := r.db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: audit.CodeGap, Outcome: holdfast.Transient, Detail: detail}); err != nil {
			t.Fatal(err)
		}
	}
	r.grow(5)
	const want = "7 calls from 2026-11-28T06:00:00Z to 2026-11-28T06:01:01Z have no record, or may have none, and the log says so"
	o := r.options()
	o.Progress = &audit.Progress{}
	for range 2 {
		report, err := audit.Verify(t.Context(), r.log.Store, o)
		if err != nil || report.Status != audit.Unanchored || report.Logs[0].Detail != want || report.Logs[0].Anchored != r.size() {
			t.Errorf("the log: %+v, %v", report, err)
		}
		r.grow(1)
	}
	s := r.shelf()
	file := s.export(t, audit.Filter{})
	report, err := audit.VerifyExport(t.Context(), bytes.NewReader(file), r.options())
	if err != nil || report.Status != audit.Unanchored || report.Logs[0].Detail != want {
		t.Errorf("an export: %+v, %v", report, err)
	}
	if err := audittest.Export(bytes.NewReader(file), r.log.Key.VerifierKey(report.Logs[0].Origin)); !errors.Is(err, audittest.ErrUnrecorded) || !strings.HasSuffix(err.Error(), ": 7") {
		t.Errorf("the second verifier: %v", err)
	}
	tamperings["delete"].do(s, 5)
	if report, err := audit.Verify(t.Context(), s, r.options()); err != nil || report.Status != audit.Broken {
		t.Errorf("with a fault: %+v, %v", report, err)
	}
}
