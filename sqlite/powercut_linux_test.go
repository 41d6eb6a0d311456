package sqlite_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var (
	cuts = flag.Int("cuts", 4, "how many times TestPowerCut cuts the power")
	mkfs = flag.String("mkfs", "mkfs.ext4 -q -F -E lazy_itable_init=0", "the command, without the file, that makes the file system whose power TestPowerCut cuts")
)

// diskLife is how many cuts one disk lives through; lifeCuts is how many of
// them one process lives through, of which the last ends it.
const diskLife, lifeCuts = 8, 4

// TestPowerCut cuts the power of a store that works, again and again, and
// counts what a machine that starts again finds: 0 acknowledged messages,
// settlements and ids lost, every start succeeds, and no handler runs again
// for a message whose ack was sent (OI-12, OI-13; edge cases 1, 2, 5, 10, 12,
// 14, 18, 25). It needs root. Any number of cuts by -args -cuts=N, another
// file system by -mkfs="mkfs.ext4 -q -F -O fast_commit" or -mkfs="mkfs.xfs -q -f".
//
// A cut is made in two ways: the process is frozen and what had reached the
// device is copied; and the file system is ended in the middle of its writes.
func TestPowerCut(t *testing.T) {
	racetest.Without(t, "the process that writes would be the same, only slower")
	var sum cutSum
	for sum.cuts < *cuts {
		d := newPowerDisk(t, *mkfs)
		book := newAcks()
		for n := 0; n < diskLife && sum.cuts < *cuts; n += lifeCuts {
			life(t, d, book, &sum, n)
		}
		sum.add(book)
		d.unmount(t)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d power cuts, %d of them in the middle of writes, %d before the store was open; acknowledged: %d enqueued, %d settled, %d processed, %d kept; lost %d; "+
		"%d handlers asked again, %d ran; %d messages left were delivered after a cut", sum.cuts, sum.dark, sum.early,
		sum.enqueued, sum.settled, sum.processed, sum.kept, sum.lost, sum.asked, sum.again, sum.drained)
	if sum.enqueued == 0 || sum.settled == 0 || sum.processed == 0 {
		t.Error("too little was acknowledged: the test did not test")
	}
}

// Without a sync per commit acknowledged messages are lost at a power cut of
// either way, and the harness sees it: it can fail.
func TestPowerCutLosesWhatIsNotSynced(t *testing.T) {
	racetest.Without(t, "the process that writes would be the same, only slower")
	for name, cut := range map[string]func(p *surger, d *powerDisk) *powerDisk{
		"frozen": func(p *surger, d *powerDisk) *powerDisk {
			p.freeze(t)
			return d.copyDisk(t)
		},
		"in the middle of writes": func(p *surger, d *powerDisk) *powerDisk {
			p.lose(t, d)
			return d
		},
	} {
		lost := 0
		for try := 0; try < 5 && lost == 0; try++ { // a checkpoint may just have synced everything
			d := newPowerDisk(t, *mkfs)
			book := newAcks()
			p := surgeOn(t, d, book, "normal", fmt.Sprint("n", try), 4000)
			p.work(100)
			p.hear(time.Now().Add(time.Duration(rand.IntN(50)) * time.Millisecond))
			found := inspect(t, cut(p, d), book)
			for _, f := range found.faults {
				t.Errorf("%s: %s", name, f)
			}
			lost = len(found.lost)
			t.Logf("synchronous=NORMAL, %s: %d acknowledged, %d found missing", name, book.count(), lost)
		}
		if lost == 0 {
			t.Errorf("%s: nothing was lost without syncs: the harness does not cut anything off", name)
		}
	}
}

// cutSum is what TestPowerCut reports.
type cutSum struct {
	cuts, dark, early, lost, asked, again, drained int
	enqueued, settled, processed, kept             int
}

func (s *cutSum) add(a *acks) {
	s.enqueued += len(a.said[saidEnqueued])
	s.settled += len(a.said[saidDelivered]) + len(a.said[saidParked])
	s.processed += len(a.said[saidProcessed])
	s.kept += len(a.said[saidKept])
}

func (s *cutSum) cut(p *surger) {
	s.cuts++
	if !p.ready {
		s.early++
	}
}

// lives are the ways to open the store, in its own file or in the caller's
// database, with a log that is merged now and then or all the time.
func lives() []struct {
	opened     string
	checkpoint int
} {
	return []struct {
		opened     string
		checkpoint int
	}{{"full", 4000}, {"modernc, pool of many", 0}, {"full", 40}, {"mattn, pool of many", 0}}
}

// life is one process on a disk: some cuts that it does not notice, and one
// that ends it.
func life(t *testing.T, d *powerDisk, book *acks, sum *cutSum, n int) {
	t.Helper()
	way := lives()[sum.cuts/lifeCuts%len(lives())]
	p := surgeOn(t, d, book, way.opened, fmt.Sprint("l", n), way.checkpoint)
	p.hear(time.Now().Add(time.Duration(rand.IntN(120)) * time.Millisecond)) // perhaps it is not open yet, or has just made its file
	for range min(lifeCuts, *cuts-sum.cuts) - 1 {
		p.freeze(t)
		sum.cut(p)
		c := d.copyDisk(t)
		judge(t, c, inspect(t, c, book), sum)
		c.drop(t)
		p.thaw(t)
		p.work(10)
		p.hear(time.Now().Add(time.Duration(rand.IntN(250)) * time.Millisecond))
	}
	sum.cut(p)
	sum.dark++
	p.lose(t, d)
	judge(t, d, inspect(t, d, book), sum)
}

func judge(t *testing.T, d *powerDisk, f *findings, sum *cutSum) {
	t.Helper()
	sum.lost += len(f.lost)
	sum.again += f.again
	sum.asked += f.asked
	sum.drained += f.drained
	for i, text := range append(f.lost, f.faults...) {
		if i == 20 {
			t.Errorf("… %d more", len(f.lost)+len(f.faults)-i)
			break
		}
		t.Errorf("cut %d: %s", sum.cuts, text)
	}
	if t.Failed() {
		keep := filepath.Join(t.ArtifactDir(), fmt.Sprintf("cut%d.db", sum.cuts))
		_, _ = command("cp", "-r", d.dir, keep)
		t.Fatalf("what the disk has is in %s with -artifacts", keep)
	}
}

// acks is what was acknowledged, as far as the test heard.
type acks struct{ said map[string]map[string]bool }

func newAcks() *acks {
	a := &acks{map[string]map[string]bool{}}
	for _, word := range []string{saidEnqueued, saidDelivered, saidParked, saidProcessed, saidKept, saidCalled, saidSigned, saidPublished, saidAttempted} {
		a.said[word] = map[string]bool{}
	}
	return a
}

func (a *acks) count() (n int) {
	for _, ids := range a.said {
		n += len(ids)
	}
	return n
}

// surger is a surge child, and what it said.
type surger struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *os.File
	rest  []byte
	book  *acks
	ready bool
	dark  bool // its disk is gone: it may fail
}

func surgeOn(t *testing.T, d *powerDisk, book *acks, durability, prefix string, checkpoint int) *surger {
	t.Helper()
	return childOn(t, book, "surge", filepath.Join(d.dir, "holdfast.db"), durability, prefix, fmt.Sprint(checkpoint))
}

// childOn starts a child that works on a disk, and says what is acknowledged.
func childOn(t *testing.T, book *acks, role string, args ...string) *surger {
	t.Helper()
	p := &surger{t: t, book: book}
	p.cmd = exec.Command(os.Args[0], args...)
	p.cmd.Env = append(os.Environ(), childEnv+"="+role)
	var w *os.File
	var err error
	if p.out, w, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, os.Stderr
	err = p.cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.out.Close()
	})
	return p
}

// hear takes in what the child says until then, or until its end.
func (p *surger) hear(until time.Time) {
	p.t.Helper()
	buf := make([]byte, 64<<10)
	for {
		if err := p.out.SetReadDeadline(until); err != nil {
			p.t.Fatal(err)
		}
		n, err := p.out.Read(buf)
		p.take(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return
		case errors.Is(err, io.EOF):
			if !p.dark {
				p.t.Fatal("the child has ended")
			}
			return
		case err != nil:
			p.t.Fatal(err)
		}
	}
}

// work waits until the child has acknowledged so much more, however slow the
// machine is.
func (p *surger) work(acks int) {
	p.t.Helper()
	limit := time.Now().Add(time.Minute)
	for want := p.book.count() + acks; p.book.count() < want; {
		if time.Now().After(limit) {
			p.t.Fatalf("the child has not acknowledged %d messages within a minute", acks)
		}
		p.hear(time.Now().Add(10 * time.Millisecond))
	}
}

func (p *surger) take(b []byte) {
	p.t.Helper()
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte("\n"))
		if !whole {
			return
		}
		p.rest = rest
		word, what, _ := strings.Cut(string(line), " ")
		ids := p.book.said[word]
		switch {
		case p.dark:
		case ids != nil:
			ids[what] = true
		case word == "ready":
			p.ready = true
		default:
			p.t.Errorf("the child says: %s", line)
		}
	}
}

// freeze stops every thread of the child, and takes in all that it has said.
func (p *surger) freeze(t *testing.T) {
	t.Helper()
	pid := p.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var s syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &s, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !s.Stopped() {
			t.Fatalf("stop the child: %v, status %x", err, s)
		}
		break
	}
	for before := -1; before != p.book.count(); {
		before = p.book.count()
		p.hear(time.Now().Add(5 * time.Millisecond))
	}
}

// lose ends the child's disk while it writes, and mounts it again after the
// child's end.
func (p *surger) lose(t *testing.T, d *powerDisk) {
	t.Helper()
	// An ack that comes after the cut comes from a machine that has no power:
	// the kernel may answer the sync that was under way with success.
	p.dark = true
	d.cut(t)
	kill(t, p.cmd)
	p.hear(time.Now().Add(10 * time.Second))
	d.remount(t)
}

func (p *surger) thaw(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// findings are what a start after a cut found.
type findings struct {
	lost, faults          []string
	asked, again, drained int // handlers asked for again, and that ran again; messages delivered
}

// inspect opens what a cut has left, and compares it with the acks.
func inspect(t *testing.T, d *powerDisk, book *acks) *findings {
	t.Helper()
	f := &findings{}
	db, err := sqlite.Open(t.Context(), filepath.Join(d.dir, "holdfast.db"), sqlite.Options{Source: "test"})
	if err != nil {
		f.faults = append(f.faults, fmt.Sprintf("the start failed: %v", err))
		return f
	}
	defer shut(t, db)
	for _, d := range db.Damage() { // a cut is no damage
		f.faults = append(f.faults, fmt.Sprintf("the start set the file aside: %s", &d))
	}
	if err := makeEffects(db); err != nil {
		f.faults = append(f.faults, fmt.Sprintf("the first write failed: %v", err))
		return f
	}
	f.outbox(t, db, book)
	f.inbox(t, db, book)
	f.drain(t, db, book)
	faults, err := db.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.faults = append(f.faults, faults...)
	return f
}

func (f *findings) lose(format string, a ...any) { f.lost = append(f.lost, fmt.Sprintf(format, a...)) }

func (f *findings) outbox(t *testing.T, db *sqlite.DB, book *acks) {
	t.Helper()
	state := map[string]holdfast.State{}
	for _, r := range rowsOf(t, db, "SELECT id, state FROM hf_message") {
		state[fmt.Sprint(r[0])] = holdfast.State(r[1].(int64))
	}
	for id := range book.said[saidEnqueued] {
		if _, ok := state[id]; !ok {
			f.lose("%s was enqueued and is lost", id)
		}
	}
	for word, want := range map[string]holdfast.State{saidDelivered: holdfast.Delivered, saidParked: holdfast.Parked} {
		for id := range book.said[word] {
			if got, ok := state[id]; !ok || got != want {
				f.lose("%s was settled as %s and is %s (there: %t)", id, want, got, ok)
			}
		}
	}
	for id := range book.said[saidProcessed] {
		if _, ok := state["of-"+id]; !ok {
			f.lose("what the handler of %s enqueued is lost", id)
		}
	}
}

func (f *findings) inbox(t *testing.T, db *sqlite.DB, book *acks) {
	t.Helper()
	processed, kept := map[string]bool{}, map[string]bool{}
	for _, r := range rowsOf(t, db, "SELECT x.id, x.kept, (SELECT count(*) FROM effect AS e WHERE e.id = x.id), (SELECT count(*) FROM hf_message AS m WHERE m.id = 'of-' || x.id) FROM hf_inbox AS x") {
		id, effects, followers := fmt.Sprint(r[0]), r[2].(int64), r[3].(int64)
		if r[1] == int64(1) {
			kept[id] = true
			continue
		}
		processed[id] = true
		if effects != 1 || followers != 1 {
			f.faults = append(f.faults, fmt.Sprintf("%s is known, with %d effects and %d messages that follow", id, effects, followers))
		}
	}
	for _, r := range rowsOf(t, db, "SELECT id FROM effect WHERE id NOT IN (SELECT id FROM hf_inbox)") {
		f.faults = append(f.faults, fmt.Sprintf("%s took effect and is not known", r[0]))
	}
	for id := range book.said[saidKept] {
		if !kept[id] {
			f.lose("%s was kept and is lost", id)
		}
	}
	for id := range book.said[saidProcessed] {
		if !processed[id] {
			f.lose("%s was processed and is forgotten", id)
			continue
		}
		f.asked++
		if err := processOnce(db, id); !errors.Is(err, errKnown) {
			f.again++
			f.faults = append(f.faults, fmt.Sprintf("%s was processed, and comes again: %v", id, err))
		}
	}
}

// drain delivers all that is left: what was in hand when the power went is
// not stuck, and what was settled does not come again.
func (f *findings) drain(t *testing.T, db *sqlite.DB, book *acks) {
	t.Helper()
	f.drained = int(db.Counts().Pending)
	settled := map[holdfast.ID]bool{}
	for limit := time.Now().Add(20 * time.Second); db.Counts().Pending > 0; {
		b, err := db.Claim(t.Context(), map[string]int{"a": 100, "b": 100, "c": 100})
		if err != nil {
			t.Fatal(err)
		}
		list := make([]holdfast.Settlement, len(b.Claims))
		for i, c := range b.Claims {
			id := string(c.Message.ID)
			if settled[c.Message.ID] || book.said[saidDelivered][id] || book.said[saidParked][id] {
				f.faults = append(f.faults, fmt.Sprintf("%s was settled and is handed out again", id))
			}
			list[i], settled[c.Message.ID] = settlement(c, holdfast.Delivered), true
		}
		if _, err := db.Settle(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(limit) {
			f.faults = append(f.faults, fmt.Sprintf("%d messages are stuck", db.Counts().Pending))
			return
		}
	}
}

func rowsOf(t *testing.T, db *sqlite.DB, text string) [][]any {
	t.Helper()
	rows, err := db.SQL(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
