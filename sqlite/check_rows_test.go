package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// alter changes four bytes inside a payload.
func alter(t testing.TB, path, payload string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(content, []byte(payload)) != 1 {
		t.Fatalf("%q stands %d times in %s, want once", payload, bytes.Count(content, []byte(payload)), path)
	}
	if err := os.WriteFile(path, bytes.Replace(content, []byte(payload), append([]byte("XXXX"), payload[4:]...), 1), 0o600); err != nil {
		t.Fatal(err)
	}
}

// answered is a message that has its answer.
var answered = holdfast.Message{ID: "answered", Source: "s", Endpoint: "E", Payload: []byte("question")}

// spoilt is a backup of a message that waits, one that is delivered and two in the inbox, one
// to be fetched and one with its answer, of which four bytes inside one's payload have changed; none: it is sound.
func spoilt(t testing.TB, payload string) (copied string) {
	t.Helper()
	db := open(t, filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
	done, waits := message("done"), message("waits")
	done.Payload, waits.Payload = []byte("payload that is delivered"), []byte("payload that waits")
	enqueue(t, db, done)
	if _, err := db.Settle(t.Context(), settlement(claim(t, db, 1)[0], holdfast.Delivered)); err != nil {
		t.Fatal(err)
	}
	enqueue(t, db, waits)
	if _, err := db.Keep(t.Context(), time.Hour, holdfast.Message{ID: "kept", Source: "s", Endpoint: "E", Payload: []byte("payload to be fetched")}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Record(t.Context(), time.Hour, holdfast.Processed{Message: answered, Response: []byte("answer of the program")}); err != nil {
		t.Fatal(err)
	}
	copied = filepath.Join(t.TempDir(), "copy.db")
	if err := db.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	if payload != "" {
		alter(t, copied, payload)
	}
	return copied
}

// F1-111, OI-14: a backup with bytes changed inside a payload, which SQLite does not
// see, is refused by name, and changes nothing; an inspection names it too.
func TestF1111ABackupWithAChangedPayloadIsRefused(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		"payload that waits": "message waits for a", "payload that is delivered": "message done for a", "payload to be fetched": "message kept of s in the inbox",
		"answer of the program": "the answer to message answered of s",
	} {
		copied := spoilt(t, payload)
		to := filepath.Join(t.TempDir(), "holdfast.db")
		_, err := sqlite.Restore(t.Context(), copied, to, sqlite.RestoreOptions{})
		broken, ok := errors.AsType[*sqlite.BrokenError](err)
		if !ok || !errors.Is(err, sqlite.ErrDamaged) || broken.Check.Broken != 1 || broken.Check.Messages+broken.Check.InboxIDs != 4 || broken.Check.Rows[0].String() != want {
			t.Errorf("%s: got %v, want that %s is damaged", payload, err, want)
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was restored: %v", payload, err)
		}
		for name, o := range map[string]sqlite.InspectOptions{"bounded": {Within: time.Hour}, "full": {Full: true}} {
			in, err := sqlite.Inspect(t.Context(), copied, o)
			if err != nil || in.Rows.Cut || in.Rows.Broken != 1 || in.Rows.Rows[0].String() != want {
				t.Errorf("%s: a %s inspection found %+v, %v", payload, name, in.Rows, err)
			}
		}
	}
}

// F1-111: who asks for such a backup gets it: the node parks the message and sends the
// others; what it has parked so stands in no restore's way again.
func TestF1111ADamagedMessageOfARestoreIsParked(t *testing.T) {
	t.Parallel()
	copied := spoilt(t, "payload that waits")
	path := filepath.Join(t.TempDir(), "holdfast.db")
	r, err := sqlite.Restore(t.Context(), copied, path, sqlite.RestoreOptions{Broken: true})
	if err != nil || r.Rows.Broken != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("sound"))
	if got := claim(t, db, 10); len(got) != 1 || got[0].Message.ID != "sound" {
		t.Errorf("claimed %+v, want the sound one alone", got)
	}
	m, err := db.Get(t.Context(), "waits")
	if err != nil || m.State != holdfast.Parked || m.Reason != holdfast.ReasonUndecodable {
		t.Errorf("the damaged one is %s, %s, %v; want it parked", m.State, m.Reason, err)
	}
	again := filepath.Join(t.TempDir(), "again.db")
	if err := db.Backup(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	r, err = sqlite.Restore(t.Context(), again, filepath.Join(t.TempDir(), "holdfast.db"), sqlite.RestoreOptions{})
	if err != nil || r.Rows.Known != 1 || r.Rows.Broken != 0 {
		t.Errorf("a backup of it: got %+v, %v", r.Rows, err)
	}
}

// F1-111: an inspection whose time is over has read a sample, and says so.
func TestF1111AnInspectionReadsAsFarAsItsTimeGoes(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
	fill(t, db, "m", 1200)
	shut(t, db)
	in, err := sqlite.Inspect(t.Context(), db.Path(), sqlite.InspectOptions{Within: time.Nanosecond})
	if err != nil || !in.Rows.Cut || in.Rows.Messages >= 1200 {
		t.Errorf("got %+v, %v", in.Rows, err)
	}
}

// restorable says that a backup of the store is restored without being asked twice, and
// that an inspection of what it became finds as many known rows, and none else.
func restorable(t testing.TB, db *sqlite.DB, known int64) {
	t.Helper()
	copied, to := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "holdfast.db")
	if err := db.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.Restore(t.Context(), copied, to, sqlite.RestoreOptions{})
	if err != nil || r.Rows.Known != known || r.Rows.Broken != 0 {
		t.Fatalf("the restore of a backup: got %+v, %v; want %d known rows", r.Rows, err, known)
	}
	in, err := sqlite.Inspect(t.Context(), to, sqlite.InspectOptions{Full: true})
	if err != nil || in.Rows.Known != known || in.Rows.Broken != 0 {
		t.Errorf("an inspection: got %+v, %v; want %d known rows", in.Rows, err, known)
	}
}

// F1-111: a damaged message that a node has parked and a person has discarded stands in no
// restore's way.
func TestF1111ADiscardedDamagedMessageIsNoNews(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	if _, err := sqlite.Restore(t.Context(), spoilt(t, "payload that waits"), path, sqlite.RestoreOptions{Broken: true}); err != nil {
		t.Fatal(err)
	}
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	if got := claim(t, db, 10); len(got) != 0 {
		t.Fatalf("claimed %+v, want the damaged one parked", got)
	}
	if m, err := db.Discard(t.Context(), "waits", "kim"); err != nil || m.Reason != holdfast.ReasonOperator {
		t.Fatalf("discarded for %s, %v", m.Reason, err)
	}
	restorable(t, db, 1)
}

// F1-111: messages that were delivered, and whose content a salvage could not find, stand
// in no restore's way. One whose body is gone without a word does.
func TestF1111WhatASalvageHasMarkedIsNoNews(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	m := message("done")
	m.Payload = []byte("payload that is delivered")
	enqueue(t, db, m)
	if _, err := db.Settle(t.Context(), settlement(claim(t, db, 1)[0], holdfast.Delivered)); err != nil {
		t.Fatal(err)
	}
	enqueue(t, db, message("waits"))
	shut(t, db)
	alter(t, path, string(m.Payload))
	content := contents(t, path)[0]
	clear(content[:4096]) // the schema and all: the file is salvaged
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if db = survives(t, path); db == nil {
		return
	}
	if list := db.Damage(); len(list) != 1 || !list[0].Done || stateOf(t, db, "done") != "delivered" {
		t.Fatalf("salvaged: %+v, and the delivered one is %s", list, stateOf(t, db, "done"))
	}
	restorable(t, db, 1)
	shut(t, db)
	other := raw(t, path)
	run(t, other, `DELETE FROM hf_body WHERE seq = (SELECT seq FROM hf_message WHERE id = 'waits')`)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	in, err := sqlite.Inspect(t.Context(), path, sqlite.InspectOptions{Full: true})
	if err != nil || in.Rows.Known != 1 || in.Rows.Broken != 1 || in.Rows.Rows[0].ID != "waits" {
		t.Errorf("without a body: got %+v, %v", in.Rows, err)
	}
}

// F1-111, SF-16: a backup of an older release is restored with the tables of this one, and its rows
// are checked as this one reads them.
func TestF1111ABackupOfAnOlderReleaseIsChecked(t *testing.T) {
	t.Parallel()
	for payload, broken := range map[string]int64{"": 0, "payload that waits": 1} {
		copied, to := spoilt(t, payload), filepath.Join(t.TempDir(), "holdfast.db")
		age(t, copied)
		if in, err := sqlite.Inspect(t.Context(), copied, sqlite.InspectOptions{}); err != nil || in.Schema != 1 {
			t.Fatalf("the backup has schema %d, %v; want the first", in.Schema, err)
		}
		_, err := sqlite.Restore(t.Context(), copied, to, sqlite.RestoreOptions{})
		if refused := errors.Is(err, sqlite.ErrDamaged); refused != (broken > 0) {
			t.Fatalf("%q: got %v", payload, err)
		}
		r, err := sqlite.Restore(t.Context(), copied, to, sqlite.RestoreOptions{Broken: true})
		if err != nil || r.Rows.Messages != 2 || r.Rows.InboxIDs != 2 || r.Rows.Broken != broken {
			t.Errorf("%q: got %+v, %v; want all rows read", payload, r.Rows, err)
		}
		in, err := sqlite.Inspect(t.Context(), to, sqlite.InspectOptions{})
		if err != nil || in.Schema != in.Newest {
			t.Errorf("%q: restored with schema %d of %d, %v", payload, in.Schema, in.Newest, err)
		}
	}
}

// unanswered says that a repeat of the message whose answer is damaged gets none, and is told,
// whichever way it comes in; the program that says again what it has answered is done.
func unanswered(t testing.TB, db *sqlite.DB) {
	t.Helper()
	known, looked, err := db.Known(t.Context(), time.Hour, answered)
	if err != nil || !known[0] {
		t.Fatalf("it is not known: %v, %v", looked, err)
	}
	kept, err := db.Keep(t.Context(), time.Hour, answered)
	if err != nil {
		t.Fatal(err)
	}
	processed, err := db.Inbox().Process(t.Context(), answered, func(context.Context, *sqlite.Tx, holdfast.Message) ([]byte, error) {
		t.Error("it is processed a second time")
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for way, r := range map[string]holdfast.Receipt{"known": looked[0].Receipt, "kept": kept[0].Receipt, "processed": processed} {
		if !r.Duplicate || r.Response != nil || !strings.Contains(r.Note, "the stored answer is damaged") {
			t.Errorf("%s: a repeat gets %+v, want no answer, and why", way, r)
		}
	}
	if err := db.Done(t.Context(), answered.Source, answered.ID, []byte("answer of the program")); err != nil {
		t.Errorf("done again, with the answer as it was: %v", err)
	}
	if err := db.Done(t.Context(), answered.Source, answered.ID, []byte("XXXXer of the program")); !errors.Is(err, holdfast.ErrState) {
		t.Errorf("done again, with the answer as it is damaged: got %v, want ErrState", err)
	}
}

// F1-111: a damaged answer is given to nobody. The daily check drops it, and what it or a
// salvage has dropped stands in no restore's way.
func TestF1111ADamagedAnswerIsNotGiven(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	r, err := sqlite.Restore(t.Context(), spoilt(t, "answer of the program"), path, sqlite.RestoreOptions{Broken: true})
	if err != nil || r.Rows.Broken != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	content := contents(t, path)[0]
	db := open(t, path, sqlite.Options{})
	defer shut(t, db)
	unanswered(t, db)
	if r := db.Check(t.Context()); r.Err != nil || r.Broken != 1 {
		t.Errorf("the check found %+v, want one row", r)
	}
	unanswered(t, db)
	restorable(t, db, 1)

	clear(content[:4096]) // the schema and all: the file is salvaged
	path = filepath.Join(t.TempDir(), "holdfast.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	other := open(t, path, sqlite.Options{Adopt: true})
	defer shut(t, other)
	if list := other.Damage(); len(list) != 1 || !list[0].Done || list[0].Salvaged.InboxIDs != 1 {
		t.Errorf("salvaged: %+v", list)
	}
	unanswered(t, other)
	restorable(t, other, 1)
}

// A sound answer outlives a backup, a salvage and the daily check.
func TestASoundAnswerIsGiven(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	content := contents(t, spoilt(t, ""))[0]
	clear(content[:4096])
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db := survives(t, path)
	if db == nil {
		return
	}
	defer shut(t, db)
	if _, r, err := db.Known(t.Context(), time.Hour, answered); err != nil || string(r[0].Receipt.Response) != "answer of the program" || r[0].Receipt.Note != "" {
		t.Errorf("got %+v, %v", r, err)
	}
	restorable(t, db, 0)
}
