package sqlite_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
	"github.com/holdfast-mq/holdfast/storetest"
)

// headless damages a file so that it is salvaged, and costs no row.
func headless(content []byte) { clear(content[:100]) }

// replaced puts bytes, of a record's header as a rule, in the place of others.
func replaced(t *testing.T, content, have, want []byte) []byte {
	t.Helper()
	if !bytes.Contains(content, have) {
		t.Fatalf("no %x in the file", have)
	}
	return bytes.ReplaceAll(content, have, want)
}

// salvagedFrom opens a specimen with some of its bytes replaced.
func salvagedFrom(t *testing.T, have, want []byte) (db *sqlite.DB, log string) {
	t.Helper()
	path := specimens(t)[0].write(t, func(_ string, content []byte) []byte {
		content = replaced(t, content, have, want)
		headless(content)
		return content
	})
	var lines bytes.Buffer
	db = open(t, path, sqlite.Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	t.Cleanup(func() { shut(t, db) })
	if len(db.Damage()) != 1 {
		t.Fatal("nothing was set aside")
	}
	return db, lines.String()
}

// strictLane is the header of the record of the lane "keyed", which has no fault.
func strictLane() []byte {
	return []byte{0x00, 0x17, 0x09, 0x00, 0x00, 0x08, 0x00, 0x00} // lane, destination, strict, fault, fault_since, paused, decided, decided_by
}

// A person who pauses a destination while a salvage goes on is not undone when the node starts
// again and goes on with it. OI-12.
func TestASalvageThatGoesOnKeepsWhatPeopleDecideMeanwhile(t *testing.T) {
	t.Parallel()
	path := specimens(t)[0].write(t, func(_ string, content []byte) []byte {
		headless(content)
		return content
	})
	db := open(t, path, sqlite.Options{Source: "node"})
	aside := db.Damage()[0].File
	for _, d := range []string{"keyed", "later", "a"} {
		if err := db.PauseLane(t.Context(), d, "anna"); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.SetLaneFault(t.Context(), "a", "no route"); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	undone(t, aside)
	run(t, raw(t, path), "DELETE FROM hf_meta WHERE key = 'salvaged'")
	db = open(t, path, sqlite.Options{Source: "node"})
	defer shut(t, db)
	list, err := db.SQL(t.Context(), `SELECT destination FROM hf_lane WHERE paused = 1 AND decided_by = 'anna' AND (destination = 'a') = (fault IS NOT NULL)`)
	if err != nil || len(list) != 3 {
		t.Errorf("still paused, with their own faults: %v, %v; want 3", list, err)
	}
}

// What a lane has in the damaged file is lost to nothing but a later decision.
func TestASalvageBringsPausesAndFaults(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	path := s.write(t, nil)
	db := open(t, path, sqlite.Options{Source: "node"})
	if err := db.PauseLane(t.Context(), "later", "anna"); err != nil {
		t.Fatal(err)
	}
	if err := db.SetLaneFault(t.Context(), "later", "no route"); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	s.files = map[string][]byte{"": contents(t, path)[0]}
	path = s.write(t, func(_ string, content []byte) []byte {
		headless(content)
		return content
	})
	db = open(t, path, sqlite.Options{Source: "node"})
	defer shut(t, db)
	list, err := db.SQL(t.Context(), `SELECT destination FROM hf_lane WHERE paused = 1 AND decided_by = 'anna' AND fault = 'no route' AND fault_since IS NOT NULL`)
	if err != nil || len(list) != 1 {
		t.Errorf("paused and held: %v, %v; want 1", list, err)
	}
}

// One bit of a lane's row costs the value that it belongs to, and not the strict order.
func TestStrictOrderOutlivesABitOfItsLane(t *testing.T) {
	t.Parallel()
	bad := strictLane()
	bad[3] = 0x08 // fault is the number 0
	db, log := salvagedFrom(t, strictLane(), bad)
	list, err := db.SQL(t.Context(), `SELECT strict FROM hf_lane WHERE destination = 'keyed'`)
	if err != nil || len(list) != 1 || list[0][0] != int64(1) {
		t.Errorf("the lane is %v, %v: want strict", list, err)
	}
	if d := db.Damage()[0]; d.Mended != 1 || d.Lost != 0 || !strings.Contains(log, "columns=[fault]") || !strings.Contains(log, "keyed") {
		t.Errorf("told as %+v, %s", d, log)
	}
}

// Of recipients who have accepted nobody is asked again because of one bit in a column that
// nobody needs: a text that reads as bytes of the same length.
func TestAcceptedRecipientsOutliveABitOfTheirRows(t *testing.T) {
	t.Parallel()
	db, _ := salvagedFrom(t, []byte{0x15, 0x2b, 0x0d, 0x09, 0x0d, 0x0d, 0x0d}, []byte{0x15, 0x2b, 0x0d, 0x09, 0x0d, 0x0c, 0x0d}) // channel, address, name, result, code, text, receipt
	p, err := db.Notifications(t.Context(), notify.Query{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	delivered := int64(0)
	for _, r := range p.Records {
		full, err := db.Notification(t.Context(), r.Notification.Origin.Site, r.Notification.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == notify.Delivered {
			delivered++
			if len(full[0].Targets) != 1 || full[0].Targets[0].Result != notify.Accepted {
				t.Errorf("delivered to %+v", full[0].Targets)
			}
		}
	}
	if d := db.Damage()[0]; d.Mended != delivered || d.Lost != 0 || !strings.Contains(d.String(), "rows of which a value is lost: 30") {
		t.Errorf("%d delivered, told as %s", delivered, d.String())
	}
}

// A bit of a channel costs its settings, which people put back; one of its kind costs the
// channel, whose name is told.
func TestAChannelOutlivesABitOfItsSettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		want                []byte
		channels            int
		lost, mended        int64
		inLog, alsoInTheLog string
	}{
		"settings": {[]byte{0x15, 0x17, 0x2b}, 2, 0, 1, "columns=[settings]", "mail"},
		"kind":     {[]byte{0x15, 0x16, 0x2a}, 1, 1, 0, "table=hf_channel", "mail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, log := salvagedFrom(t, []byte{0x15, 0x17, 0x2a}, test.want) // name, kind, settings
			if b := bookOf(t, db); len(b.Channels) != test.channels {
				t.Errorf("channels: %+v", b.Channels)
			}
			if d := db.Damage()[0]; d.Lost != test.lost || d.Mended != test.mended {
				t.Errorf("lost %d, mended %d", d.Lost, d.Mended)
			}
			if !strings.Contains(log, test.inLog) || !strings.Contains(log, test.alsoInTheLog) {
				t.Errorf("the log: %s", log)
			}
		})
	}
}

// filledRow is a row of a plain table that a salvage brings as it is.
func filledRow(table *rows.Table) rows.Row {
	r := storetest.FilledRow(table, 0)
	switch r := r.(type) {
	case *rows.Lane:
		r.Destination = "a" // its message brings it
	case *rows.Channel:
		r.Waits = "[7]"
	case *rows.AuditRecord:
		r.Leaf = []byte("{}") // another text is no record
	case *rows.List:
		r.Name, r.Recipients = "ops", 1
	case *rows.Recipient:
		r.List, r.Place = "ops", 0
	case *rows.Bundle:
		r.Seq, r.Kind, r.Source, r.ID = 4, notify.BundleKind, "plant-1", "n" // its notification brings it, and tells its name
	case *rows.Event:
		r.Seq = 4 // with that bundle
	case *rows.Delivery:
		r.Seq, r.Event, r.Resends = 5, 4, 4 // its message is purged
	case *rows.Target:
		r.Result = 3
	}
	return r
}

// Whatever stands in a plain table comes out of a salvage as it was.
func TestASalvageBringsEachColumn(t *testing.T) {
	t.Parallel()
	s := specimen{files: map[string][]byte{}}
	path := s.write(t, nil)
	file, err := sqlite.OpenTarget(t.Context(), path, sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	now, err := file.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := []rows.Row{
		&rows.Message{Seq: 2, ID: "m", Source: "s", Destination: "a", Endpoint: "E", Kind: "command", State: holdfast.Pending, Cycle: 1, Expires: rows.None, FirstTry: rows.None, Settled: rows.None, Start: rows.None},
		&rows.Notification{Seq: 3, ID: "n", Site: "plant-1", Bundle: 4, Delivered: rows.None, Purged: true, State: int64(holdfast.Discarded)},
	}
	for _, table := range rows.Plain() {
		list = append(list, filledRow(table))
	}
	for _, r := range list {
		if err := file.Write(t.Context(), []rows.Row{r}, storecopy.Progress{HereNow: now, Done: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s.files[""] = contents(t, path)[0]
	path = s.write(t, func(_ string, content []byte) []byte {
		headless(content)
		return content
	})
	db := open(t, path, sqlite.Options{})
	d := db.Damage()
	shut(t, db)
	if len(d) != 1 || d[0].Lost+d[0].Mended != 0 {
		t.Fatalf("set aside: %+v", d)
	}
	source, err := sqlite.OpenSource(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	for _, table := range rows.Plain() {
		got, err := source.Read(t.Context(), rows.Range{Table: table, Base: now})
		if diff := cmp.Diff([]rows.Row{filledRow(table)}, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", table.Name, err, diff)
		}
	}
}
