package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// smallDisk is a file system of its own, so that it can be full.
type smallDisk struct {
	t      testing.TB
	folder string
	filler string
}

func newSmallDisk(t testing.TB, size string) *smallDisk {
	t.Helper()
	folder := t.TempDir()
	err := unix.Mount("none", folder, "tmpfs", 0, "size="+size)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skipf("mount a small disk: %v; it takes root", err)
	}
	if err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return &smallDisk{t, folder, filepath.Join(folder, "filler")}
}

func (d *smallDisk) free() int64 {
	d.t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(d.folder, &s); err != nil {
		d.t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// fill leaves so much of the disk.
func (d *smallDisk) fill(leave int64) {
	d.t.Helper()
	f, err := os.OpenFile(d.filler, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	s, err := f.Stat()
	if err != nil {
		d.t.Fatal(err)
	}
	if more := d.free() - leave; more > 0 {
		err = unix.Fallocate(int(f.Fd()), 0, s.Size(), more)
	} else if more < 0 {
		err = f.Truncate(max(s.Size()+more, 0))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		d.t.Fatalf("fill the disk: %v", err)
	}
}

func (d *smallDisk) clear() {
	d.t.Helper()
	// Cut off first: a process that another test is just starting may still have the file open.
	err := os.Truncate(d.filler, 0)
	if err == nil {
		err = os.Remove(d.filler)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
}

// full is a store on a small disk, and what it has acknowledged.
type full struct {
	t      testing.TB
	disk   *smallDisk
	path   string
	o      sqlite.Options
	db     *sqlite.DB
	where  string // of the sweep, for messages
	claims map[holdfast.ID]holdfast.Claim
	want   map[holdfast.ID][]string // states that a message may be in
	kept   int64                    // messages that wait in the inbox
	booked map[int]bool             // business rows by handlers: whether they were acknowledged
}

func (f *full) errorf(format string, args ...any) {
	f.t.Helper()
	f.t.Errorf(f.where+": "+format, args...)
}

// done says whether a call was acknowledged; if not, only for the one reason.
func (f *full) done(what string, err error) bool {
	f.t.Helper()
	if err != nil && !errors.Is(err, holdfast.ErrDiskFull) {
		f.errorf("%s: got %v, want ErrDiskFull or nothing", what, err)
	}
	return err == nil
}

// ended is done for what must be recorded while there is a reserve.
func (f *full) ended(what string, err error) bool {
	f.t.Helper()
	if err != nil && f.o.Reserve > 0 {
		f.errorf("%s is not recorded: %v; disk %+v", what, err, f.db.Disk())
	}
	return f.done(what, err)
}

func (f *full) enqueue(id holdfast.ID, size int) {
	m := message(id)
	m.Payload = make([]byte, size)
	_, err := f.db.Enqueue(f.t.Context(), m)
	if f.want[id] = []string{"nothing"}; f.done("enqueue", err) {
		f.want[id] = []string{"pending"}
	}
}

func (f *full) settle(id holdfast.ID, s holdfast.State) {
	c := f.claims[id]
	set := settlement(c, s)
	set.Outcome, set.Error = holdfast.Transient, "answered 503"
	won, err := f.db.Settle(f.t.Context(), set)
	if f.ended("settle", err) {
		if !won[0] {
			f.errorf("settle %s: it did not take effect", id)
		}
		f.want[id] = []string{s.String()}
		delete(f.claims, id)
	}
}

func (f *full) process(n int) {
	id := holdfast.ID(fmt.Sprint("effect", n))
	_, err := f.db.Process(f.t.Context(), holdfast.Message{ID: holdfast.ID(fmt.Sprint("in", n)), Source: "s", Endpoint: "E"}, time.Hour,
		func(ctx context.Context, tx *sqlite.Tx, _ holdfast.Message) ([]byte, error) {
			if _, err := tx.ExecContext(ctx, "INSERT INTO business VALUES (?1)", n); err != nil {
				return nil, err
			}
			_, err := tx.Enqueue(ctx, message(id))
			return nil, err
		})
	f.booked[n] = f.done("process", err)
	if f.want[id] = []string{"nothing"}; f.booked[n] {
		f.want[id] = []string{"pending"}
	}
}

func (f *full) keep(n int) {
	results, err := f.db.Keep(f.t.Context(), time.Hour, holdfast.Message{ID: holdfast.ID(fmt.Sprint("keep", n)), Source: "s", Endpoint: "E", Payload: make([]byte, 2000)})
	if err == nil {
		err = results[0].Err
	}
	if f.done("keep", err) {
		f.kept++
	}
}

func (f *full) ingest(id holdfast.ID) {
	in := notification(id, "plant-1")
	id = in.Messages[0].ID
	results, err := f.db.Bundle(f.t.Context(), in)
	if err == nil {
		err = results[0].Err
	}
	if f.want[id] = []string{"nothing"}; f.done("ingest", err) {
		f.want[id] = []string{"pending"}
	}
}

// begin makes a store with something of everything.
func (f *full) begin() {
	f.t.Helper()
	f.db = open(f.t, f.path, f.o)
	if err := f.db.Do(f.t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE business (n)")
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
	for _, id := range []holdfast.ID{"old", "bad", "worse", "c0", "c1", "c2", "c3"} {
		f.enqueue(id, 100)
	}
	for _, c := range claim(f.t, f.db, 7) {
		f.claims[c.Message.ID] = c
	}
	f.settle("bad", holdfast.Parked)
	f.settle("worse", holdfast.Parked)
	f.settle("old", holdfast.Delivered)
	f.keep(0)
	f.process(0)
}

// script does all that a store is asked for.
func (f *full) script() {
	f.t.Helper()
	ctx := f.t.Context()
	f.enqueue("small", 10)
	f.settle("c0", holdfast.Delivered)
	f.process(1)
	f.enqueue("medium", 20<<10)
	f.keep(1)
	for i := range 40 {
		f.enqueue(holdfast.ID(fmt.Sprint("big", i)), 50<<10)
	}
	f.process(2)
	f.keep(2)
	f.settle("c1", holdfast.Parked)
	f.settle("c2", holdfast.Pending)
	if _, err := f.db.Requeue(ctx, "bad", holdfast.Requeue{}); f.ended("requeue", err) {
		f.want["bad"] = []string{"pending"}
	}
	if _, err := f.db.Discard(ctx, "worse", "me"); f.ended("discard", err) {
		f.want["worse"] = []string{"discarded"}
	}
	if err := f.db.Done(ctx, "s", "keep0", []byte("ok")); f.ended("done", err) {
		f.kept--
	}
	_, err := f.db.Record(ctx, time.Hour, holdfast.Processed{Message: holdfast.Message{ID: "called", Source: "s", Endpoint: "E"}, Response: []byte("r")})
	f.ended("record", err)
	if n, _, err := f.db.Purge(ctx, holdfast.Retention{Delivered: time.Nanosecond}); f.ended("purge", err) && n > 0 {
		for id, s := range f.want {
			if s[0] == "delivered" {
				f.want[id] = []string{"nothing"}
			}
		}
	}
	// Who has accepted must not be asked again, wherever there is no room.
	targets := make([]notify.Target, 20)
	for i := range targets {
		targets[i] = notify.Target{Channel: "mail", Address: fmt.Sprint(i, "@example.org"), Result: notify.Accepted}
	}
	if f.ended("record of recipients", f.db.RecordTargets(ctx, "c3", targets...)) {
		if got, err := f.db.Targets(ctx, "c3"); err != nil || len(got) != len(targets) {
			f.errorf("%d recipients are recorded, %v", len(got), err)
		}
	}
	f.ingest("note")
	if err := f.db.SetLaneFault(ctx, "a", "gone"); !f.ended("lane fault", err) {
		return
	}
	f.enqueue("last", 10)
}

// check compares the store with what it has acknowledged.
func (f *full) check(when string) {
	f.t.Helper()
	was := f.where
	f.where += ", " + when
	defer func() { f.where = was }()
	if err := f.db.Err(); err != nil {
		f.errorf("the store has stopped: %v", err)
		return
	}
	faults, err := f.db.Audit(f.t.Context())
	for _, fault := range faults {
		f.errorf("%s", fault)
	}
	if err != nil {
		f.errorf("audit: %v", err)
	}
	for id, want := range f.want {
		if _, claimed := f.claims[id]; claimed {
			want = append(want, "claimed")
		}
		got := stateOf(f.t, f.db, id)
		found := false
		for _, w := range want {
			found = found || got == w
		}
		if !found {
			f.errorf("%s is %s, want %v", id, got, want)
		}
	}
	if got := f.db.Counts().Kept; got != f.kept {
		f.errorf("%d messages are kept, want %d", got, f.kept)
	}
	rows, err := f.db.SQL(f.t.Context(), "SELECT n FROM business")
	if err != nil {
		f.errorf("%v", err)
	}
	got := map[int]bool{}
	for _, r := range rows {
		got[int(r[0].(int64))] = true
	}
	for n, acknowledged := range f.booked {
		if got[n] != acknowledged {
			f.errorf("handler %d: acknowledged %t, its row there %t", n, acknowledged, got[n])
		}
	}
}

// settleRest records what could not be recorded before.
func (f *full) settleRest() {
	f.t.Helper()
	for id, c := range f.claims {
		won, err := f.db.Settle(f.t.Context(), settlement(c, holdfast.Delivered))
		if err != nil || !won[0] {
			f.errorf("settle %s with room again: %v, %v", id, won, err)
		}
		f.want[id] = []string{"delivered"}
	}
	clear(f.claims)
}

func (f *full) works(suffix int) {
	f.t.Helper()
	if f.db.Look(f.t.Context()); f.db.Full() {
		f.errorf("there is room, and the store does not see it: %+v", f.db.Disk())
	}
	id := holdfast.ID(fmt.Sprint("again", suffix))
	m := message(id)
	m.Payload = make([]byte, 30<<10)
	if _, err := f.db.Enqueue(f.t.Context(), m); err != nil {
		f.errorf("enqueue with room again: %v", err)
	}
	f.want[id] = []string{"pending"}
	if _, err := f.db.Keep(f.t.Context(), time.Hour, holdfast.Message{ID: id, Source: "s", Endpoint: "E"}); err != nil {
		f.errorf("keep with room again: %v", err)
	} else {
		f.kept++
	}
}

// F: wherever the disk becomes full, what was acknowledged stays, refusals say
// why, and with room again everything goes on, without a restart and after
// one. While there is a reserve, all that ends a message is recorded.
//
// SF-08; edge case 52.
func TestDiskFullAtEveryWritePoint(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "hundreds of stores, one after the other")
	for name, reserve := range map[string]int64{"with a reserve": 1 << 20, "without": -1} { // more than an empty store takes when its log is written back
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := newSmallDisk(t, "7m")
			for leave := int64(0); leave <= 400<<10; leave += sweepStep(leave) {
				f := &full{
					t: t, disk: disk, path: filepath.Join(disk.folder, "data", "holdfast.db"), o: sqlite.Options{Reserve: reserve, Source: "test"},
					where:  fmt.Sprintf("%d KiB left", leave>>10),
					claims: map[holdfast.ID]holdfast.Claim{}, want: map[holdfast.ID][]string{}, booked: map[int]bool{},
				}
				f.begin()
				disk.fill(leave)
				f.script()
				f.check("full")
				f.restartFull()
				disk.clear()
				f.works(1)
				f.settleRest()
				f.check("room again")
				shut(t, f.db)
				f.db = open(t, f.path, f.o)
				f.works(2)
				f.check("after a restart")
				shut(t, f.db)
				if t.Failed() {
					return
				}
				if err := os.RemoveAll(filepath.Dir(f.path)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// sweepStep makes the sweep finer where less is left.
func sweepStep(leave int64) int64 {
	if leave < 64<<10 {
		return 8 << 10
	}
	return 40 << 10
}

// restartFull stops and starts the store while the disk is full. A start that
// needs more room than there is says so; one that succeeds delivers.
func (f *full) restartFull() {
	f.t.Helper()
	for id := range f.claims { // a stop gives claims back
		f.want[id] = []string{"pending"}
	}
	clear(f.claims)
	shut(f.t, f.db)
	db, err := sqlite.Open(f.t.Context(), f.path, f.o)
	if err != nil {
		if !errors.Is(err, holdfast.ErrDiskFull) || f.o.Reserve > 0 {
			f.errorf("start on a full disk: %v", err)
		}
		f.disk.clear()
		f.db = open(f.t, f.path, f.o)
		return
	}
	f.db = db
	b, err := db.Claim(f.t.Context(), map[string]int{"a": 3})
	if err != nil || len(b.Claims) != 3 {
		f.errorf("claim after a start on a full disk: %d claims, %v", len(b.Claims), err)
	}
	for _, c := range b.Claims {
		f.claims[c.Message.ID] = c
	}
	for _, c := range b.Claims[:min(len(b.Claims), 2)] {
		f.settle(c.Message.ID, holdfast.Delivered)
	}
	f.check("started on a full disk")
}

// A first start, with its migrations and its reserve, on a disk that becomes
// full at any point of it: it works or says why, and the next one works.
//
// SF-08; edge case 52.
func TestFirstStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t, "4m")
	refused, started, unreserved := 0, 0, 0
	for leave := int64(0); leave <= 1600<<10; leave += 2 * sweepStep(leave) {
		path := filepath.Join(disk.folder, "data", "holdfast.db")
		o := sqlite.Options{Reserve: 512 << 10}
		disk.fill(leave)
		db, err := sqlite.Open(t.Context(), path, o)
		switch {
		case errors.Is(err, holdfast.ErrDiskFull):
			refused++
		case err != nil:
			t.Errorf("%d KiB left: %v", leave>>10, err)
		default:
			started++
			if d := db.Disk(); d.Held < d.Reserve {
				unreserved++
			}
			if _, err := db.Enqueue(t.Context(), message("first")); err != nil && !errors.Is(err, holdfast.ErrDiskFull) {
				t.Errorf("%d KiB left: enqueue: %v", leave>>10, err)
			}
			shut(t, db)
		}
		disk.clear()
		db = open(t, path, o)
		enqueue(t, db, message("second"))
		if d := db.Disk(); d.Held != d.Reserve || d.Full {
			t.Errorf("%d KiB left, then room: %+v", leave>>10, d)
		}
		audit(t, db)
		shut(t, db)
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 || unreserved == 0 || started == unreserved {
		t.Errorf("%d starts were refused, %d worked, %d of them without a whole reserve: the sweep misses something", refused, started, unreserved)
	}
}

// A log as long as it grows between two checkpoints, a disk that many fill at
// once, and all that is in hand is recorded.
//
// SF-08; edge cases 51, 52.
func TestFullDiskUnderLoad(t *testing.T) {
	t.Parallel()
	const inHand = 400
	disk := newSmallDisk(t, "56m")
	path := filepath.Join(disk.folder, "holdfast.db")
	db := open(t, path, sqlite.Options{})
	for i := range inHand {
		enqueue(t, db, message(holdfast.ID(fmt.Sprint("c", i))))
	}
	claims := claim(t, db, inHand)
	revoke := someAccess(t, db)
	accepted := flood(t, db)
	if d := db.Disk(); !d.Full || d.Held != d.Reserve {
		t.Errorf("after %d messages of 20 KiB: %+v, want it full and the reserve whole", len(accepted), d)
	}
	// Whoever else writes to this disk leaves nothing.
	disk.fill(0)
	var works sync.WaitGroup
	for i := range inHand {
		works.Go(func() {
			s := settlement(claims[i], holdfast.Parked)
			s.Outcome, s.Error = holdfast.Permanent, "answered 400"
			if won, err := db.Settle(context.WithoutCancel(t.Context()), s); err != nil || !won[0] {
				t.Errorf("settle %d: %v, %v", i, won, err)
			}
		})
	}
	works.Wait()
	if _, err := db.Enqueue(t.Context(), message("more")); !errors.Is(err, holdfast.ErrDiskFull) {
		t.Errorf("enqueue on a full disk: %v", err)
	}
	revoke()
	t.Logf("%d messages accepted, then %d settled; disk %+v", len(accepted), inHand, db.Disk())
	disk.clear()
	// What is delivered and purged makes room inside the file.
	for len(claims) > 0 {
		if claims = claim(t, db, 500); len(claims) == 0 {
			break
		}
		var list []holdfast.Settlement
		for _, c := range claims {
			list = append(list, settlement(c, holdfast.Delivered))
		}
		if _, err := db.Settle(t.Context(), list...); err != nil {
			t.Fatal(err)
		}
	}
	delivered := 0
	for _, id := range accepted {
		if stateOf(t, db, id) == "delivered" {
			delivered++
		}
	}
	if delivered != len(accepted) {
		t.Errorf("%d of %d accepted messages were delivered", delivered, len(accepted))
	}
	for more := true; more; {
		var err error
		if _, more, err = db.Purge(t.Context(), holdfast.Retention{Delivered: time.Nanosecond, Parked: time.Nanosecond}); err != nil {
			t.Fatal(err)
		}
	}
	db.Look(t.Context())
	had := fileSize(t, path)
	again := flood(t, db)
	if len(again) < len(accepted)/10 {
		t.Errorf("%d messages found room again, %d did before", len(again), len(accepted))
	}
	if now := fileSize(t, path); now > had+had/4 {
		t.Errorf("the file grew from %d to %d bytes; purged messages' room is not used again", had, now)
	}
	audit(t, db)
	shut(t, db)
}

// someAccess lets a program and a site in; revoke ends that on a full disk, which lets nobody else in.
func someAccess(t *testing.T, db *sqlite.DB) (revoke func()) {
	t.Helper()
	n, ctx, must := nodestore.New(db, nil), t.Context(), func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	must("create token", n.Tokens.CreateToken(ctx, "ci", "admin", 0, [32]byte{1}, ""))
	must("add site", n.Sites.AddSite(ctx, "plant-7", [32]byte{2}, ""))
	_, err := n.Sites.EnrollSite(ctx, [32]byte{2}, [32]byte{3})
	must("enroll site", err)
	return func() {
		t.Helper()
		for what, err := range map[string]error{
			"add site": n.Sites.AddSite(ctx, "plant-8", [32]byte{4}, ""), "rotate site": n.Sites.RotateSite(ctx, "plant-7", [32]byte{5}, false, ""),
			"put list": n.Directory.PutList(ctx, notify.List{Name: "ops"}, ""),
		} {
			if !errors.Is(err, holdfast.ErrDiskFull) {
				t.Errorf("%s on a full disk: %v", what, err)
			}
		}
		must("note site", n.Sites.SiteSeen(ctx, "plant-7", "1", sites.Report{}))
		must("rotate site at once", n.Sites.RotateSite(ctx, "plant-7", [32]byte{6}, true, ""))
		must("revoke site", n.Sites.RevokeSite(ctx, "plant-7", ""))
		must("delete token", n.Tokens.DeleteToken(ctx, "ci", true, ""))
	}
}

// A follower whose page the disk has no room for waits for room, also where there is
// enough for what others write.
func TestAFollowerWaitsForRoom(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t, "24m")
	db := open(t, filepath.Join(disk.folder, "holdfast.db"), sqlite.Options{Reserve: -1})
	defer shut(t, db)
	enqueue(t, db, message("m"))
	if err := db.PauseLane(t.Context(), "a", "anna"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	tries, ended := 0, make(chan error, 1)
	go func() {
		ended <- db.Project(ctx, holdfast.Follower{Name: "f"}, func(context.Context, []holdfast.Entry) (list []holdfast.Row, _ error) {
			if tries++; tries < 3 {
				disk.fill(256 << 10)
			} else {
				disk.clear()
			}
			for i := range 100 {
				list = append(list, &rows.List{Name: fmt.Sprint("l", i), Description: strings.Repeat("x", 20<<10), Changed: rows.Now})
			}
			return list, nil
		})
	}()
	stands := func() (known, read bool) {
		list, err := db.Followers(t.Context())
		known = err == nil && len(list) == 1
		return known, known && list[0].Unread.IsZero()
	}
	waittest.Until(t, "the follower is known", func() bool { known, _ := stands(); return known })
	if err := db.ResumeLane(t.Context(), "a", "anna"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "all is read", func() bool { _, read := stands(); return read || len(ended) > 0 })
	stop()
	if err := <-ended; err != nil || tries < 3 {
		t.Errorf("ended after %d tries with %v, want nil after 3", tries, err)
	}
}

func fileSize(t testing.TB, path string) int64 {
	t.Helper()
	s, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return s.Size()
}

// flood enqueues from many sides until the disk is full.
func flood(t *testing.T, db *sqlite.DB) (accepted []holdfast.ID) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	ctx := context.WithoutCancel(t.Context())
	for range 8 {
		all.Go(func() {
			for range 2000 {
				m := message("")
				m.Payload = make([]byte, 20<<10)
				r, err := db.Enqueue(ctx, m)
				if err != nil {
					if !errors.Is(err, holdfast.ErrDiskFull) {
						t.Errorf("enqueue: %v", err)
					}
					return
				}
				mu.Lock()
				accepted = append(accepted, r[0].ID)
				mu.Unlock()
			}
			t.Error("the disk does not become full")
		})
	}
	all.Wait()
	return accepted
}

// OI-12, SF08: on a full disk a damaged file stays as it is, and the start says
// why; with too little room for all of it, salvage waits, and goes on.
func TestSalvageOnAFullDisk(t *testing.T) {
	s := specimens(t)[0]
	from := s.write(t, func(_ string, content []byte) []byte {
		content[20] = 77
		return content
	})
	d := newSmallDisk(t, "3m")
	path := filepath.Join(d.folder, "holdfast.db")
	for _, side := range []string{"", ".lock"} {
		if err := os.WriteFile(path+side, contents(t, from+side)[0], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.fill(0)
	before := names(t, d.folder)
	for range 2 {
		_, err := sqlite.Open(t.Context(), path, sqlite.Options{Source: "node"})
		if !errors.Is(err, holdfast.ErrDiskFull) || !strings.Contains(err.Error(), "free as much space") {
			t.Fatalf("got %v, want ErrDiskFull and the way out", err)
		}
	}
	if after := names(t, d.folder); !slices.Equal(after, before) {
		t.Errorf("left %q, was %q", after, before)
	}
	d.fill(700 << 10) // enough for an empty store, and not for the rows
	db := open(t, path, sqlite.Options{Source: "node", Reserve: -1, SalvageWait: 100 * time.Millisecond})
	if _, err := db.Enqueue(t.Context(), message("new")); !db.Recovering() || !errors.Is(err, sqlite.ErrRecovering) {
		t.Errorf("while it waits for room: recovering %v, %v", db.Recovering(), err)
	}
	d.clear()
	waittest.Until(t, "the salvage has ended", func() bool { return !db.Recovering() })
	list := db.Damage()
	if v := s.examine(t, db); len(list) != 1 || !list[0].Done || v.lost+v.undecodable+v.keptLost > 0 {
		t.Errorf("%+v cost %+v", list, v)
	}
	shut(t, db)
}
