package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var (
	flips    = flag.Int("flips", 200, "how many bytes the damage test flips")
	flipSeed = flag.Uint64("flip-seed", 0, "where they stand; 0: somewhere else each time")
)

// specimen is a small database with something of everything, as files: closed
// cleanly, or as a process that was killed leaves it.
type specimen struct {
	files    map[string][]byte // by suffix
	messages map[holdfast.ID]holdfast.Message
	states   map[holdfast.ID]holdfast.State
	done     []holdfast.Message // incoming, processed
	kept     map[holdfast.ID]holdfast.Message
}

func specimens(t testing.TB) []*specimen {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{Source: "node"})
	s := &specimen{messages: map[holdfast.ID]holdfast.Message{}, states: map[holdfast.ID]holdfast.State{}, kept: map[holdfast.ID]holdfast.Message{}}
	s.fill(t, db)
	// Twice: with all of it in the log, and with all of it in the file.
	killed := *s
	killed.files = map[string][]byte{}
	// The last transaction of a log cannot be told from one that was cut short.
	if err := db.SetLaneFault(t.Context(), "nobody", "the last commit"); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		killed.files[suffix] = contents(t, path+suffix)[0]
	}
	shut(t, db)
	s.files = map[string][]byte{"": contents(t, path)[0]}
	return []*specimen{s, &killed}
}

func (s *specimen) fill(t testing.TB, db *sqlite.DB) {
	t.Helper()
	ctx := t.Context()
	s.notify(t, db)
	if err := db.ConfigureLane(ctx, "keyed", holdfast.LaneSettings{Strict: true}); err != nil {
		t.Fatal(err)
	}
	if err := nodestore.New(db, nil).Sites.AddSite(ctx, "plant-7", [32]byte{7}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := nodestore.New(db, nil).Sites.EnrollSite(ctx, [32]byte{7}, [32]byte{8}); err != nil {
		t.Fatal(err)
	}
	if err := nodestore.New(db, nil).Tokens.CreateToken(ctx, "ops", "operate", 0, [32]byte{1, 2, 3}, ""); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		m := holdfast.Message{
			ID: holdfast.NewID(), Destination: "a", Endpoint: fmt.Sprint("E", i%7), Kind: holdfast.Command, Source: "node",
			Payload: make([]byte, rnd.IntN(400)), CorrelationID: fmt.Sprint("c", i), Headers: map[string]string{"n": fmt.Sprint(i)},
		}
		for j := range m.Payload {
			m.Payload[j] = byte(rnd.Uint32())
		}
		switch {
		case i%50 == 0:
			m.Payload = bytes.Repeat(m.Payload, 40) // overflow pages
		case i%10 == 1:
			m.ID = holdfast.ID(fmt.Sprint("order-", i))
		case i%10 == 2:
			m.Destination, m.OrderingKey = "keyed", fmt.Sprint("k", i%3)
		case i%10 == 3:
			m.Destination, m.TTL = "later", 100*time.Hour
		}
		enqueue(t, db, m)
		s.messages[m.ID], s.states[m.ID] = m, holdfast.Pending
	}
	for _, c := range claim(t, db, 120) {
		to := holdfast.Delivered
		if c.Seq%9 == 0 {
			to = holdfast.Parked
		}
		if _, err := db.Settle(ctx, settlement(c, to)); err != nil {
			t.Fatal(err)
		}
		s.states[c.Message.ID] = to
		if c.Seq%27 == 0 {
			if _, err := db.Discard(ctx, c.Message.ID, "test"); err != nil {
				t.Fatal(err)
			}
			s.states[c.Message.ID] = holdfast.Discarded
		}
	}
	for i := range 150 {
		m := holdfast.Message{ID: holdfast.NewID(), Source: fmt.Sprint("sender", i%3), Endpoint: "In", Kind: holdfast.Signal, Payload: []byte(fmt.Sprint("in", i))}
		if i%5 == 0 {
			if _, err := db.Keep(ctx, time.Hour, m); err != nil {
				t.Fatal(err)
			}
			s.kept[m.ID] = m
			continue
		}
		if _, err := db.Record(ctx, time.Hour, holdfast.Processed{Message: m, Response: []byte("done")}); err != nil {
			t.Fatal(err)
		}
		s.done = append(s.done, m)
	}
}

// write puts the files into a folder of their own.
func (s *specimen) write(t testing.TB, change func(suffix string, content []byte) []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	for suffix, content := range s.files {
		if change != nil {
			content = change(suffix, bytes.Clone(content))
		}
		if content == nil {
			continue
		}
		if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path+".lock", []byte("1 host 2026-01-01T00:00:00Z\nopened\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// survives opens the file as a node would: whatever is wrong with it, it starts
// in time, and if its background check finds more, it starts once more.
func survives(t testing.TB, path string) *sqlite.DB {
	t.Helper()
	for range 3 {
		began := time.Now()
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{Source: "node", Adopt: true})
		if err != nil {
			t.Errorf("does not start: %v", err)
			return nil
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the start took %s", took)
		}
		r := db.Check(t.Context())
		if db.Err() == nil {
			if r.Err != nil {
				t.Errorf("check: %v", r.Err)
			}
			return db
		}
		if !errors.Is(r.Err, sqlite.ErrDamaged) && !errors.Is(db.Err(), sqlite.ErrDamaged) {
			t.Errorf("the store stopped: %v", db.Err())
		}
		_ = db.Close()
	}
	t.Errorf("damage is found after every salvage")
	return nil
}

// verdictOf is what is left of a specimen.
type verdictOf struct{ lost, undecodable, again, keptLost, stuck, unsent int }

// judge starts and examines the store. Damage may also show only when a row is
// used: then the store stops, and the next start has to mend it.
func (s *specimen) judge(t testing.TB, path string) (v verdictOf, damage []sqlite.Damage) {
	t.Helper()
	for range 3 {
		db := survives(t, path)
		if db == nil {
			return v, nil
		}
		quiet := &muted{TB: t}
		v = s.examine(quiet, db)
		damage = db.Damage()
		stopped := errors.Is(db.Err(), sqlite.ErrDamaged)
		if err := db.Close(); err != nil && !stopped {
			t.Error(err)
		}
		if !stopped {
			for _, text := range quiet.errors {
				t.Error(text)
			}
			return v, damage
		}
	}
	t.Error("damage shows again and again")
	return v, damage
}

// muted keeps errors until it is known whether they count.
type muted struct {
	testing.TB
	errors []string
}

func (m *muted) Error(a ...any)            { m.errors = append(m.errors, fmt.Sprint(a...)) }
func (m *muted) Errorf(f string, a ...any) { m.errors = append(m.errors, fmt.Sprintf(f, a...)) }

// examine delivers, receives and counts, and fails for whatever is wrong in
// itself: content, or a second effect.
func (s *specimen) examine(t testing.TB, db *sqlite.DB) (v verdictOf) {
	t.Helper()
	rows, err := db.SQL(t.Context(), "SELECT m.id, m.state, m.reason, coalesce(p.payload, b.payload), m.tries FROM hf_message AS m JOIN hf_body AS b USING (seq) LEFT JOIN hf_bundle AS p ON p.seq = b.bundle")
	if err != nil {
		t.Error(err)
		return v
	}
	there := map[holdfast.ID]bool{}
	for _, r := range rows {
		id := sqlite.IDFrom(r[0])
		there[id] = true
		state := holdfast.State(r[1].(int64))
		want, known := s.messages[id]
		switch {
		case r[2] == string(holdfast.ReasonUndecodable):
			v.undecodable++
		case !known:
			t.Errorf("message %q was never accepted", id)
		case state == holdfast.Delivered && s.states[id] == holdfast.Pending:
			if r[4] == int64(0) { // else an examination before has delivered it
				v.unsent++
			}
		case state != s.states[id]:
			v.again++ // its state has no hash: a flip may make it another
		case !bytes.Equal(r[3].([]byte), want.Payload) && state == holdfast.Pending:
			t.Errorf("message %s waits with a wrong payload", id)
		}
	}
	for id := range s.messages {
		if !there[id] {
			v.lost++
		}
	}
	s.deliver(t, db)
	s.receive(t, db, &v)
	if rows, err = db.SQL(t.Context(), "SELECT id FROM hf_message WHERE state = 0 AND blocked = 0"); err != nil {
		t.Error(err)
	}
	v.stuck = len(rows)
	return v
}

func (s *specimen) deliver(t testing.TB, db *sqlite.DB) {
	t.Helper()
	for {
		b, err := db.Claim(t.Context(), map[string]int{"a": 500, "keyed": 500, "later": 500, notify.LanePrefix + "mail": 500})
		if err != nil {
			t.Error(err)
			return
		}
		if len(b.Claims) == 0 {
			return
		}
		list := make([]holdfast.Settlement, len(b.Claims))
		for i, c := range b.Claims {
			got, want := c.Message, s.messages[c.Message.ID]
			if got.Destination != want.Destination || got.Endpoint != want.Endpoint || got.Kind != want.Kind || got.Source != want.Source ||
				got.OrderingKey != want.OrderingKey || got.CorrelationID != want.CorrelationID || got.TTL != want.TTL ||
				got.Headers["n"] != want.Headers["n"] || !bytes.Equal(got.Payload, want.Payload) {
				t.Errorf("message %s is delivered as another", got.ID)
			}
			list[i] = settlement(c, holdfast.Delivered)
		}
		if _, err := db.Settle(t.Context(), list...); err != nil {
			t.Error(err)
			return
		}
	}
}

func (s *specimen) receive(t testing.TB, db *sqlite.DB, v *verdictOf) {
	t.Helper()
	page, err := db.Kept(t.Context(), holdfast.KeptQuery{Limit: 500})
	if err != nil {
		t.Error(err)
		return
	}
	v.keptLost = len(s.kept)
	for _, k := range page.Messages {
		if k.Damaged {
			continue
		}
		v.keptLost--
		if want := s.kept[k.Message.ID]; want.Source != k.Message.Source || want.Endpoint != k.Message.Endpoint || !bytes.Equal(want.Payload, k.Message.Payload) {
			t.Errorf("kept message %s is another", k.Message.ID)
		}
	}
	for _, m := range s.done {
		effect := false
		_, err := db.Process(t.Context(), m, time.Hour, func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
			effect = true
			return nil, nil
		})
		if effect {
			t.Errorf("incoming message %s took effect a second time", m.ID)
		}
		if err != nil && !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("incoming message %s: %v", m.ID, err)
		}
	}
	// An id that was accepted is not accepted again as something new.
	for _, m := range s.messages {
		if r, err := db.Enqueue(t.Context(), m); err == nil && !r[0].Duplicate {
			v.lost += 1000
		}
		if m.ID[0] != 'o' { // a few will do
			break
		}
	}
}

// Edge cases 16, 17, 20, 21 and 25; OI-12, damaged file: whatever byte is
// flipped, the store starts, nothing wrong is sent, nothing takes effect twice,
// and nothing but what stood on that very page is lost.
func TestAnyByteMayFlip(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "hundreds of stores, one after the other")
	all := specimens(t)
	seed := *flipSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range *flips {
		s := all[i%2]
		suffix := ""
		if i%4 == 3 {
			suffix = "-wal"
		}
		at, value := rnd.IntN(len(s.files[suffix])), byte(rnd.Uint32())
		if i%3 == 0 { // where everything hangs on it
			at = at / 4096 * 4096
			at += rnd.IntN(min(100, len(s.files[suffix])-at))
		}
		if s.files[suffix][at] == value {
			value ^= 1 << rnd.IntN(8)
		}
		t.Run(fmt.Sprintf("%d%s@%d=%02x", i%2, suffix, at, value), func(t *testing.T) {
			t.Parallel()
			path := s.write(t, func(which string, content []byte) []byte {
				if which == suffix {
					content[at] = value
				}
				return content
			})
			// SQLite may have moved the rows of a page before it met the damage in it.
			const page = 16
			if v, d := s.judge(t, path); v.lost > 0 || v.undecodable > page || v.again > 2 || v.keptLost > 1 || v.stuck > 1 || v.unsent > 1 {
				t.Errorf("one flipped byte cost %+v; %v", v, d)
			}
		})
	}
}

// Edge cases 16 and 22: wherever a file was cut, the store starts with what is
// left, and says what it has lost.
func TestAnyFileMayBeCut(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "hundreds of stores, one after the other")
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
	all := specimens(t)
	type cut struct {
		s      *specimen
		suffix string
		to     int
		gone   bool // no file at all
	}
	cuts := map[string]cut{
		"the file is empty":                 {all[0], "", 0, false},
		"the file is gone, its log is not":  {all[1], "", 0, true},
		"the file is empty, its log is not": {all[1], "", 0, false},
		"the log is empty":                  {all[1], "-wal", 0, false},
		"the log is gone":                   {all[1], "-wal", 0, true},
		"the memory file is empty":          {all[1], "-shm", 0, false},
		"the memory file is gone":           {all[1], "-shm", 0, true},
		"within the header":                 {all[0], "", 50, false},
		"after the first page":              {all[0], "", 4096, false},
	}
	for range 12 {
		n := rnd.IntN(len(all[0].files[""]))
		cuts[fmt.Sprint("the file at ", n)] = cut{all[0], "", n, false}
		n = rnd.IntN(len(all[1].files["-wal"]))
		cuts[fmt.Sprint("the log at ", n)] = cut{all[1], "-wal", n, false}
	}
	for name, c := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := c.s.write(t, func(which string, content []byte) []byte {
				switch {
				case which != c.suffix:
					return content
				case c.gone:
					return nil
				}
				return content[:c.to]
			})
			db := survives(t, path)
			if db == nil {
				return
			}
			defer shut(t, db)
			if c.suffix == "-shm" || c.suffix == "" && c.s == all[1] {
				if v := c.s.examine(t, db); v.lost+v.undecodable+v.keptLost > 0 {
					t.Errorf("the log has everything, and yet %+v", v)
				}
			} else {
				c.s.deliver(t, db)
			}
			if damaged := len(db.Damage()) > 0; damaged != (c.suffix == "") {
				t.Errorf("damage is reported: %v", damaged)
			}
			enqueue(t, db, message("new"))
		})
	}
}

// Edge cases 4 and 9: what was damaged is moved aside, whole, and reported
// until somebody takes it away.
func TestDamagedFileIsSetAside(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	path := s.write(t, func(_ string, content []byte) []byte {
		clear(content[:4096]) // the schema and all
		return content
	})
	if err := os.Chmod(path, 0o620); err != nil { // as no umask makes it
		t.Fatal(err)
	}
	was := contents(t, path)[0]
	db := survives(t, path)
	if db == nil {
		return
	}
	s.stillNotifies(t, db)
	if v := s.examine(t, db); v.lost+v.undecodable+v.keptLost > 0 {
		t.Errorf("the first page cost %+v", v)
	}
	list := db.Damage()
	if len(list) != 1 || !list[0].Done || list[0].Salvaged.Pending == 0 || list[0].Salvaged.Tokens != 1 || list[0].Cause == "" {
		t.Fatalf("got %+v, want one report", list)
	}
	if !bytes.Equal(contents(t, list[0].File)[0], was) {
		t.Error("the file that was set aside was changed")
	}
	if _, role, err := nodestore.New(db, nil).Tokens.FindToken(t.Context(), [32]byte{1, 2, 3}); err != nil || role != "operate" {
		t.Errorf("the token is %q, %v", role, err)
	}
	if name, err := nodestore.New(db, nil).Sites.FindSite(t.Context(), [32]byte{8}); err != nil || name != "plant-7" || list[0].Salvaged.Sites != 1 {
		t.Errorf("the site is %q, %v", name, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o620 {
		t.Errorf("the new file is not for the same users: %v, %v", info.Mode(), err)
	}
	if db.Careful() == 0 {
		t.Error("the store is not careful after damage")
	}
	shut(t, db)
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	again, err := sqlite.SetAside(filepath.Dir(path))
	if err != nil || len(again) != 1 || again[0].File != list[0].File {
		t.Errorf("listed: %+v, %v", again, err)
	}
	if err := os.Rename(list[0].File, filepath.Join(t.TempDir(), "evidence.db")); err != nil {
		t.Fatal(err)
	}
	if left := db.Damage(); len(left) != 0 {
		t.Errorf("acknowledged, and still reported: %v", left)
	}
}

// A file that holds tables of others is never set aside, nor one that was never
// ours.
func TestForeignFilesAreNotSetAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE business (x)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	content := contents(t, path)[0]
	content[20] = 77 // reserved space in each page
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if !errors.Is(err, sqlite.ErrDamaged) || !strings.Contains(err.Error(), "business") {
		t.Errorf("got %v, want ErrDamaged with the table", err)
	}
	if !bytes.Equal(contents(t, path)[0], content) {
		t.Error("the file was changed")
	}
}

// A page that is lost as a whole, as with a bad sector, costs at most what stood
// on it: rows are found by their indexes, names in theirs, and of a message whose
// content is gone people find what is left.
func TestAnyPageMayBeLost(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "hundreds of stores, one after the other")
	s := specimens(t)[0]
	pages := len(s.files[""]) / 4096
	worst := verdictOf{}
	for n := rand.IntN(3); n < pages; n += 3 {
		t.Run(fmt.Sprint("page ", n+1), func(t *testing.T) {
			path := s.write(t, func(_ string, content []byte) []byte {
				fill := byte(0)
				if n%2 == 0 {
					fill = 0xff
				}
				copy(content[n*4096:], bytes.Repeat([]byte{fill}, 4096))
				return content
			})
			v, d := s.judge(t, path)
			if v.lost > 0 || v.undecodable > 40 || v.keptLost > 40 || v.stuck > 0 || v.unsent > 0 {
				t.Errorf("one page cost %+v; %v", v, d)
			}
			worst = verdictOf{undecodable: max(worst.undecodable, v.undecodable), again: max(worst.again, v.again), keptLost: max(worst.keptLost, v.keptLost)}
		})
	}
	t.Logf("of %d pages, the dearest cost %+v", pages, worst)
}
