package audit_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/audit/audittest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/rows"
)

// keyed is a rig whose key has a file that a test knows.
func keyed(t *testing.T) (*rig, string) {
	t.Helper()
	r, path := newRig(t), filepath.Join(t.TempDir(), "audit.key")
	r.log.Key = must(audit.OpenKey(path))
	return r, path
}

// intact fails unless the log, an export and a proof are intact by the key of whoever knows only that one.
func (r *rig) intact(known audit.Public, vkey string) {
	r.t.Helper()
	o := audit.VerifyOptions{Keys: []audit.Public{known}}
	for name, o := range map[string]audit.VerifyOptions{"the store": o, "with the witness": {Keys: o.Keys, Witness: r.log.Witness}} {
		report, err := audit.Verify(r.t.Context(), r.log.Store, o)
		if err != nil || report.Status != audit.Intact || report.Logs[0].Anchored != r.size() {
			r.t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
	var b bytes.Buffer
	x := &audit.Exporter{Reader: r.log.Store.(audit.ProofReader)}
	if err := errors.Join(x.Begin(r.t.Context(), ""), x.Write(r.t.Context(), &b)); err != nil {
		r.t.Fatal(err)
	}
	if report, err := audit.VerifyExport(r.t.Context(), bytes.NewReader(b.Bytes()), o); err != nil || report.Status != audit.Intact || report.Logs[0].Anchored != r.size() {
		r.t.Errorf("an export: %+v, %v", report, err)
	}
	if err := audittest.Export(bytes.NewReader(b.Bytes()), vkey); err != nil {
		r.t.Error(err)
	}
	p := r.prove(3)
	if got := r.judged(&p, o, vkey); got.Status != audit.Intact {
		r.t.Errorf("a proof: %+v", got)
	}
}

// Whoever knows the first key believes what the third one signs, and the other way round; what has no hand-over is not believed.
func TestAKeyHandsOverToTheNext(t *testing.T) {
	t.Parallel()
	r, path := keyed(t)
	origin := must(r.log.Origin(t.Context()))
	first, firstV := r.log.Key.Public(), r.log.Key.VerifierKey(origin)
	r.grow(20)
	for range 2 {
		before := r.log.Key.Public()
		_, c, err := r.log.Rotate(t.Context(), nil, "it is old", "anna")
		if err != nil || !slices.Equal(c.Keys, []audit.Public{before, r.log.Key.Public()}) || c.Size != r.size() {
			t.Fatalf("%+v, %v", c, err)
		}
		r.grow(10)
		r.intact(first, firstV)
	}
	last := r.log.Key
	r.intact(last.Public(), last.VerifierKey(origin))
	if reopened := must(audit.OpenKey(path)); reopened.Public() != last.Public() {
		t.Error("the file has another key")
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("the next key's file is there still: %v", err)
	}
	// Without the hand-overs the first key knows nothing of the last one.
	s := r.shelf()
	s.checkpoints = slices.DeleteFunc(s.checkpoints, func(c *rows.AuditCheckpoint) bool { return audit.HandsOver(c.Note) })
	report, err := audit.Verify(t.Context(), s, audit.VerifyOptions{Keys: []audit.Public{first}})
	if err != nil || report.Logs[0].Anchored >= r.size() {
		t.Errorf("without a hand-over: %+v, %v", report, err)
	}
	p := r.prove(3)
	p.HandOvers = p.HandOvers[1:]
	if got := r.judged(&p, audit.VerifyOptions{Keys: []audit.Public{first}}, firstV); got.Status != audit.Broken {
		t.Errorf("a proof without the first hand-over: %+v", got)
	}
	page, err := r.log.Store.(audit.Records).Query(t.Context(), audit.Query{Filter: audit.Filter{Kind: audit.KeyChange}, Limit: 9})
	if err != nil || len(page.Records) != 2 || page.Records[0].Actor != "anna" || !strings.Contains(string(page.Records[0].Extra), last.VerifierKey(origin)) {
		t.Errorf("recorded: %+v, %v", page.Records, err)
	}
	// A log that was cut is not signed by a new key either, when only the witness has what the old one signed.
	if _, _, err := r.log.Rotate(t.Context(), nil, "r", "anna"); err != nil {
		t.Fatal(err)
	}
	fresh := &audit.Log{Store: &cut{r.log.Store, 10}, Site: "site", Node: "node", Key: must(audit.OpenKey(path)), Witness: r.log.Witness}
	if err := fresh.Checkpoint(t.Context()); !errors.Is(err, audit.ErrRewritten) {
		t.Errorf("a log that was cut: %v", err)
	}
}

// A change that is asked again, since its answer was lost, is the same change, also after the process died in it and after
// later ones; a key that never signed cannot be replaced.
func TestAHandOverThatIsAskedAgain(t *testing.T) {
	t.Parallel()
	r, path := keyed(t)
	r.grow(5)
	first := r.log.Key.Public()
	dying := &audit.Log{Store: r.log.Store, Journal: r.db, Site: "site", Node: "node", Key: must(audit.OpenKey(path)), Witness: &away{Witness: r.log.Witness, calls: 1}}
	if _, _, err := dying.Rotate(t.Context(), &first, "r", "anna"); !errors.Is(err, audit.ErrWitness) {
		t.Fatal(err)
	}
	note, c, err := r.log.Rotate(t.Context(), &first, "r", "anna")
	if err != nil || len(c.Keys) != 2 || c.Keys[0] != first || r.log.Key.Public() != c.Keys[1] || must(audit.OpenKey(path)).Public() != c.Keys[1] {
		t.Fatalf("asked again: %+v, %v", c, err)
	}
	second := r.log.Key.Public()
	for range 2 {
		if _, _, err := r.log.Rotate(t.Context(), &second, "r", "anna"); err != nil {
			t.Fatal(err)
		}
	}
	if again, _, err := r.log.Rotate(t.Context(), &first, "r", "anna"); err != nil || again != note {
		t.Errorf("asked once more: %v, %s; want %s", err, again, note)
	}
	page, err := r.log.Store.(audit.Records).Query(t.Context(), audit.Query{Filter: audit.Filter{Kind: audit.KeyChange}, Limit: 9})
	if err != nil || len(page.Records) != 2 {
		t.Errorf("%d changes are on record, %v; want 2", len(page.Records), err)
	}
	if _, _, err := r.log.Rotate(t.Context(), &audit.Public{1}, "r", "anna"); !errors.Is(err, audit.ErrOtherKey) {
		t.Errorf("a key that never signed: %v", err)
	}
}

// cut is a store whose log has lost its end and its checkpoints.
type cut struct {
	audit.Store

	size int64
}

func (c *cut) Newest(context.Context, string) (*rows.AuditCheckpoint, error) { return nil, nil }

func (c *cut) OpenLog(ctx context.Context, origin string, own bool) (*rows.AuditLog, error) {
	l, err := c.Store.OpenLog(ctx, origin, own)
	if err == nil {
		l.Size = c.size
	}
	return l, err
}

// Wherever the process dies while a key hands over, the next start goes on with one key, and nothing that was signed is lost.
func TestAHandOverThatDied(t *testing.T) {
	t.Parallel()
	r, path := keyed(t)
	r.grow(5)
	origin := must(r.log.Origin(t.Context()))
	old, oldV := r.log.Key.Public(), r.log.Key.VerifierKey(origin)
	node := func(store audit.Store, witness audit.Witness) *audit.Log {
		return &audit.Log{Store: store, Journal: r.db, Site: "site", Node: "node", Key: must(audit.OpenKey(path)), Witness: witness}
	}
	started := func() *audit.Log {
		l := node(r.log.Store, r.log.Witness)
		if err := l.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l
	}
	// After the file was made, and after the record: the old key goes on, and the next call takes the same new one.
	if _, _, err := node(&dies{r.log.Store}, r.log.Witness).Rotate(t.Context(), nil, "r", "anna"); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	next := must(audit.OpenKey(path + ".new")).Public()
	if l := started(); l.Key.Public() != old {
		t.Error("the new key signs before the old one has handed over")
	}
	r.intact(old, oldV)
	// The witness cannot be read: nothing is signed.
	if _, _, err := node(r.log.Store, &unread{r.log.Witness, true}).Rotate(t.Context(), nil, "r", "anna"); !errors.Is(err, audit.ErrWitness) {
		t.Fatal(err)
	}
	if l := started(); l.Key.Public() != old {
		t.Error("the key has changed without a witness")
	}
	// After the checkpoint, before the witness and the file.
	if _, _, err := node(r.log.Store, &away{Witness: r.log.Witness, calls: 1}).Rotate(t.Context(), nil, "r", "anna"); !errors.Is(err, audit.ErrWitness) {
		t.Fatal(err)
	}
	if must(audit.OpenKey(path)).Public() != old {
		t.Error("the new key has the file before the witness knows it")
	}
	r.log.Key = started().Key
	if r.log.Key.Public() != next || must(audit.OpenKey(path)).Public() != next {
		t.Error("the hand-over is not finished")
	}
	r.grow(3)
	r.intact(old, oldV)
	// The witness alone shows it too.
	s := r.shelf()
	s.checkpoints = nil
	o := audit.VerifyOptions{Keys: []audit.Public{old}, Witness: r.log.Witness}
	if report, err := audit.Verify(t.Context(), s, o); err != nil || report.Status != audit.Intact || report.Logs[0].Anchored != r.size() {
		t.Errorf("by the witness: %+v, %v", report, err)
	}
}

var errDied = errors.New("died")

// dies is a store that no checkpoint reaches.
type dies struct{ audit.Store }

func (*dies) Sign(context.Context, *rows.AuditCheckpoint, audit.Public) error { return errDied }

// raced is a store into which another node has put a checkpoint of the same size a moment before.
type raced struct {
	audit.Store

	other *audit.Log
}

func (s *raced) Sign(ctx context.Context, c *rows.AuditCheckpoint, by audit.Public) error {
	if err := s.other.Checkpoint(ctx); err != nil {
		return err
	}
	return s.Store.Sign(ctx, c, by)
}

// A hand-over is kept also where the old key has signed the same size before.
func TestAHandOverTakesThePlaceOfACheckpoint(t *testing.T) {
	t.Parallel()
	r, path := keyed(t)
	r.grow(5)
	old, oldV := r.log.Key.Public(), r.log.Key.VerifierKey(must(r.log.Origin(t.Context())))
	other := &audit.Log{Store: r.log.Store, Site: "site", Node: "node", Key: must(audit.OpenKey(path))}
	l := &audit.Log{Store: &raced{r.log.Store, other}, Journal: r.db, Site: "site", Node: "node", Key: r.log.Key, Witness: r.log.Witness}
	if _, c, err := l.Rotate(t.Context(), nil, "r", "anna"); err != nil || len(c.Keys) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	r.grow(5)
	r.intact(old, oldV)
}

// Nodes that share a log take the new key from the file that they are given, and none signs with the old one.
func TestTheOtherNodesTakeTheNewKey(t *testing.T) {
	t.Parallel()
	r, path := keyed(t)
	r.grow(5)
	pem := must(os.ReadFile(path))
	theirs := filepath.Join(t.TempDir(), "audit.key")
	if err := os.WriteFile(theirs, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &audit.Log{Store: r.log.Store, Site: "site", Node: "node", Key: must(audit.OpenKey(theirs))}
	if _, _, err := r.log.Rotate(t.Context(), nil, "r", "anna"); err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(t.Context()); !errors.Is(err, audit.ErrKey) {
		t.Errorf("with the old key: %v", err)
	}
	if err := os.WriteFile(theirs+".new", must(os.ReadFile(path)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(t.Context()); err != nil || l.Key.Public() != r.log.Key.Public() {
		t.Errorf("with the new key: %v", err)
	}
	if _, err := os.Stat(theirs + ".new"); !os.IsNotExist(err) {
		t.Errorf("the new key's file: %v", err)
	}
	// Both are asked, with the same new key.
	must(audit.OpenKey(path + ".new"))
	if err := os.WriteFile(theirs+".new", must(os.ReadFile(path+".new")), 0o600); err != nil {
		t.Fatal(err)
	}
	l.Journal = r.db
	for _, log := range []*audit.Log{r.log, l} {
		if _, _, err := log.Rotate(t.Context(), nil, "r", "anna"); err != nil {
			t.Fatal(err)
		}
	}
	if l.Key.Public() != r.log.Key.Public() || must(audit.OpenKey(theirs)).Public() != l.Key.Public() {
		t.Error("they sign with two keys")
	}
}

// A node that shares a log with the one that signs gives its own witness what that one has signed, and nothing of a log
// that its witness contradicts.
func TestEachNodeOfALogHasAWitness(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		r, path := keyed(t)
		r.grow(5)
		theirs := filepath.Join(t.TempDir(), "audit.key")
		if err := os.WriteFile(theirs, must(os.ReadFile(path)), 0o600); err != nil {
			t.Fatal(err)
		}
		l := &audit.Log{Store: r.log.Store, Site: "site", Node: "node", Shared: true, Key: must(audit.OpenKey(theirs)), Witness: audit.File(theirs + ".witness")}
		if err := r.log.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		newest, root := must(r.log.Store.Newest(t.Context(), must(r.log.Origin(t.Context())))), ""
		root = strings.Split(newest.Note, "\n")[2]
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Checkpoints(ctx) }()
		waittest.Until(t, "its witness has what the other one has signed", func() bool {
			text, _ := os.ReadFile(theirs + ".witness")
			return strings.Contains(string(text), root)
		})
		cancel()
		if err := <-ended; err != nil || l.Problem() != "" {
			t.Fatal(err, l.Problem())
		}
		// Its witness has another history.
		c := must(audit.ParseCheckpoint(newest.Note))
		c.Root = audit.Hash{1}
		if err := os.WriteFile(theirs+".witness", []byte(must(c.Sign(l.Key))), 0o600); err != nil {
			t.Fatal(err)
		}
		fresh := &audit.Log{Store: r.log.Store, Site: "site", Node: "node", Shared: true, Key: l.Key, Witness: l.Witness}
		ctx, cancel = context.WithCancel(t.Context())
		go func() { ended <- fresh.Checkpoints(ctx) }()
		r.grow(3)
		if err := r.log.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "it tells", func() bool { return strings.Contains(fresh.Problem(), audit.ErrRewritten.Error()) })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
