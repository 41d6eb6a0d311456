package storecopy_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/storecopy"
	"github.com/holdfast-mq/holdfast/storetest"
)

// some are rows of a table: with everything, with nothing but the key, and again
// with everything under another key.
func some(table *rows.Table) (list []rows.Row) {
	for n := range int64(3) {
		r := storetest.FilledRow(table, n)
		for i, f := range table.Fields(r) {
			empty := n == 1 && i >= len(table.Key)
			switch f := f.(type) {
			case *rows.Instant:
				if empty && table.Columns[i].Null || n == 2 && i%2 == 0 {
					*f = rows.None
				}
			case *string:
				if empty {
					*f = ""
				}
			case *[]byte:
				if empty {
					*f = nil
				}
			case *int64:
				if empty {
					*f = 0
				}
			case *bool:
				*f = !empty
			}
		}
		list = append(list, r)
	}
	return list
}

// Whatever a description says is kept, by either store, and found behind any place. A row whose
// message is gone is nobody's: a new message in the target may get its number.
func TestRowsOfEachTableAreKept(t *testing.T) {
	t.Parallel()
	const there, here = 17_000_000, 1_700_000_000_000_000
	file, err := sqlite.OpenTarget(t.Context(), newFile(t), sqlite.Options{Reserve: -1})
	must(t, err)
	defer shut(t, file)
	database, err := postgres.OpenTarget(t.Context(), pgtest.Shared(t).Database(t), storecopy.Origin{})
	must(t, err)
	defer shut(t, database)
	for name, store := range map[string]storecopy.Importer{"sqlite": file, "postgres": database} {
		for _, r := range some(rows.Of((*rows.Target)(nil))) {
			seq := r.(*rows.Target).Seq
			must(t, store.Write(t.Context(), []rows.Row{&rows.Notification{Seq: seq, ID: holdfast.ID(fmt.Sprint(seq)), Bundle: seq, Delivered: rows.None, Purged: true, State: int64(holdfast.Discarded)}}, storecopy.Progress{}))
		}
		for _, table := range rows.Plain() {
			if len(table.Of) > 0 {
				must(t, store.Write(t.Context(), []rows.Row{storetest.FilledRow(table, 7)}, storecopy.Progress{}))
			}
			want := some(table)
			must(t, store.Write(t.Context(), want, storecopy.Progress{Base: there, HereNow: here}))
			must(t, store.Write(t.Context(), want[:1], storecopy.Progress{Base: there, HereNow: here})) // it takes its own place
			var got []rows.Row
			for w := (rows.Range{Table: table, Base: here, Limit: 1, Bytes: 1 << 20}); ; {
				page, err := store.Read(t.Context(), w)
				must(t, err)
				if len(page) == 0 {
					break
				}
				got, w.After = append(got, page...), table.Place(page[0])
			}
			want = some(table)
			for i, c := range table.Columns { // the first row was put twice
				if at, ok := table.Field(want[0], i).(*rows.Instant); ok && c.Grows && *at != rows.None {
					*at++
				}
			}
			if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, table.Name, diff)
			}
		}
	}
}

// foreign is a row whose type is none of package rows, though it names a table of it.
type foreign struct{ rows.Token }

// What no table has is refused before anything is written.
func TestARowOfNoTableIsRefused(t *testing.T) {
	t.Parallel()
	file, err := sqlite.OpenTarget(t.Context(), newFile(t), sqlite.Options{Reserve: -1})
	must(t, err)
	defer shut(t, file)
	database, err := postgres.OpenTarget(t.Context(), pgtest.Shared(t).Database(t), storecopy.Origin{})
	must(t, err)
	defer shut(t, database)
	for _, store := range []storecopy.Importer{file, database} {
		refused(t, store.Write(t.Context(), []rows.Row{&foreign{}}, storecopy.Progress{}), rows.ErrNotPlain, "foreign")
	}
}

// splitRows are rows of the split tables: of each, every column has a value in one of them.
func splitRows() map[string][]rows.Row {
	due := rows.Message{
		Seq: 2, ID: "due", Source: "s", Destination: "a", Kind: "command", Endpoint: "E", CorrelationID: "c", Payload: []byte("p"), Headers: `{"k":"v"}`, Retry: `{"Attempts":3}`, TTL: 7,
		State: holdfast.Pending, Created: 1, Due: 5, Expires: 9, FirstTry: 3, Settled: rows.None, Start: rows.None, Failures: 1, Tries: 2, Cycle: 3, Force: true, GivenUp: true,
	}
	waits := due
	waits.Seq, waits.ID, waits.OrderingKey, waits.Waits, waits.Due, waits.Start = 4, "waits", "k", true, rows.None, 6
	discarded := due
	discarded.Seq, discarded.ID, discarded.State, discarded.Reason, discarded.Due, discarded.Settled, discarded.GivenUp = 6, "discarded", holdfast.Discarded, "operator", rows.None, 8, false
	discarded.Bundle, discarded.Payload = 7, nil
	kept := rows.Incoming{
		Seq: 3, Source: "s", ID: "kept", Endpoint: "E", Hash: make([]byte, 32), Kept: true, Received: 1, Processed: rows.None, Expires: 9,
		Kind: "command", Payload: []byte("p"), Headers: `{"k":"v"}`, CorrelationID: "c",
	}
	done := rows.Incoming{Seq: 5, Source: "s", ID: "done", Endpoint: "E", Hash: make([]byte, 32), Received: 1, Processed: 2, Expires: 9, Response: []byte("r")}
	return map[string][]rows.Row{
		"hf_meta":    {&rows.Settings{One: 1, Notices: 3, Book: 7}},
		"hf_message": {&due, &waits, &discarded},
		"hf_entry": {&rows.Entry{
			Seq: 1, Message: 2, Kind: 1, State: 3, At: 4, Cycle: 5, Attempt: 6, Outcome: 7, Charged: true, Maybe: true, Took: 8, Reason: "r", Code: "c", Error: "e", Actor: "a",
		}},
		"hf_inbox": {&kept, &done},
		"hf_notification": {&rows.Notification{
			Seq: 8, Copy: 1, ID: "n", Message: "m", Channel: "mail", Type: "t", List: "l", Subject: "s", Bundle: 7, Site: "plant", Instance: "i", Script: "sc", Execution: "ex",
			Parent: "p", Enqueued: 7, Created: 1, Delivered: 5, Purged: true, State: int64(holdfast.Delivered), Settled: 5, Tried: 4, Failures: 1, Tries: 2, Cycle: 3, Reason: "r", LastError: "e",
		}},
	}
}

// What the stores write and read by hand is all that the rows have, too.
func TestRowsOfSplitTablesAreKept(t *testing.T) {
	t.Parallel()
	file, err := sqlite.OpenTarget(t.Context(), newFile(t), sqlite.Options{Reserve: -1})
	must(t, err)
	defer shut(t, file)
	database, err := postgres.OpenTarget(t.Context(), pgtest.Shared(t).Database(t), storecopy.Origin{})
	must(t, err)
	defer shut(t, database)
	bundle := &rows.Bundle{Seq: 7, Kind: "k", Source: "s", ID: "b", Hash: make([]byte, 32), Payload: []byte("p")}
	for _, store := range []storecopy.Importer{file, database} {
		must(t, store.Write(t.Context(), []rows.Row{bundle}, storecopy.Progress{}))
	}
	for _, table := range rows.Tables() {
		if !table.Split {
			continue
		}
		want := splitRows()[table.Name]
		for i, c := range table.Columns {
			if table.Name == "hf_entry" && slices.Contains([]string{"subject", "id", "detail"}, c.Name) {
				continue // of entries that are about no message, which a copy leaves out
			}
			if !slices.ContainsFunc(want, func(r rows.Row) bool { return !reflect.ValueOf(table.Field(r, i)).Elem().IsZero() }) {
				t.Errorf("no row has %s.%s", table.Name, c.Name)
			}
		}
		for name, store := range map[string]storecopy.Importer{"sqlite": file, "postgres": database} {
			now, err := store.Now(t.Context())
			must(t, err)
			must(t, store.Write(t.Context(), want, storecopy.Progress{HereNow: now}))
			got, err := store.Read(t.Context(), rows.Range{Table: table, Base: now})
			must(t, err)
			if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, table.Name, diff)
			}
		}
	}
}
