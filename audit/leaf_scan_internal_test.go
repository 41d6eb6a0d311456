package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// scanned are leaves as the product writes them, and what scan makes of them.
func scanned(t *testing.T) map[bool][][]byte {
	t.Helper()
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456000, time.UTC)
	least := Record{ID: "a", Occurred: at, Channel: System, Kind: Config, Status: Success, Site: "s"}
	full := Record{
		ID: "01890a5d-ac96-774b-bcce-b302099a8057", Occurred: at, Channel: APIOutbound, Kind: CachedCall, Status: Failed,
		Correlation: "c", Execution: "e\n", Parent: `p"`, Trace: "t", Site: "Café", Node: "n", Instance: "i", Script: "s", Actor: "a", Target: "t", HTTP: 503, Took: time.Second,
		Error: "no\\", Request: "{\"a\":\"\u00e9\"}", Response: "<r>\t</r>", Extra: []byte(`{"a":[1,20,"x\"y",{}],"b":{"c":null,"d":[true,false]}}`),
	}
	sealed, about, escaped := full, least, least
	sealed.Personal, about.Kind, escaped.Target = []string{"target"}, Purged, "a\nb"
	list := map[bool][][]byte{}
	for r, can := range map[*Record]bool{&least: true, &full: true, &sealed: false, &about: false, &escaped: false} {
		data, _, err := r.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		list[can] = append(list[can], data)
	}
	return list
}

// sameAsRead reports what differs if scan reads a leaf.
func sameAsRead(data []byte) (scanned bool, err error) {
	got := Record{ID: "former", Target: "former", Personal: []string{"target"}, Erased: []string{"target"}}
	if !got.scan(data) {
		return false, nil
	}
	want, err := Read(data, nil)
	if err != nil {
		return true, fmt.Errorf("scan takes %q, which Read refuses: %w", data, err)
	}
	if !want.Matches(Row(1, 1, &got, nil, Hash{})) || want.ID != got.ID || len(want.Personal)+len(got.Personal)+len(got.Erased) != 0 {
		return true, fmt.Errorf("scan makes of %q %+v, and Read %+v", data, got, want)
	}
	return true, nil
}

func TestLeavesAreScannedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for want, list := range scanned(t) {
		for _, data := range list {
			if got, err := sameAsRead(data); got != want || err != nil {
				t.Errorf("scan of %s: %t, %v; want %t", data, got, err, want)
			}
		}
	}
}

// Whatever scan takes, Read takes too, with the same fields: also from somebody who may write the table.
func TestScanTakesNothingThatReadRefuses(t *testing.T) {
	t.Parallel()
	var seeds [][]byte
	for _, list := range scanned(t) {
		seeds = append(seeds, list...)
	}
	parts := []string{`"`, `\`, `\\`, `\u0041`, `\ud800`, "\x00", "\x1f", "\x7f", "\xc3", "\xff", "é", "0", "1", "9999999999", "-", ".5", "e1", "{", "}", "[", "]", ",", ":", " ", "null", "true", "{}", `"":`, `,"a":1`, `,"http":07`, `,"http":7`, `,"sealed":{}`}
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 100_000 {
		data := bytes.Clone(seeds[rng.IntN(len(seeds))])
		for range 1 + rng.IntN(3) {
			from := rng.IntN(len(data))
			to := min(len(data), from+rng.IntN(4)*rng.IntN(4))
			part := []byte(parts[rng.IntN(len(parts))])
			if rng.IntN(4) == 0 { // a piece of another leaf
				other := seeds[rng.IntN(len(seeds))]
				part = other[rng.IntN(len(other)):]
				part = part[:min(len(part), rng.IntN(12))]
			}
			data = append(append(bytes.Clone(data[:from]), part...), data[to:]...)
			if len(data) == 0 {
				data = []byte("{")
			}
		}
		ok, err := sameAsRead(data)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			taken++
		}
	}
	if taken < 1000 {
		t.Errorf("scan took %d changed leaves: too few to say anything", taken)
	}
	least := `{"v":1,"id":"a","at":"2026-11-30T12:00:00.000000Z","channel":"c","kind":"k","status":"s","site":"s","node":"n"`
	deep := []byte(least + `,"extra":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}")
	if ok, err := sameAsRead(deep); ok || err != nil {
		t.Errorf("a deep value: %t, %v", ok, err)
	}
}

// Each column that is taken from the record is compared with it.
func TestEachColumnIsCompared(t *testing.T) {
	t.Parallel()
	r := Record{ID: "a", Occurred: time.Unix(1, 0), Site: "s", Status: Success}
	for i := range reflect.TypeFor[rows.AuditRecord]().NumField() {
		row := Row(1, 1, &r, nil, Hash{})
		if !r.Matches(row) {
			t.Fatal("a row does not match its own record")
		}
		name, f := reflect.TypeFor[rows.AuditRecord]().Field(i).Name, reflect.ValueOf(row).Elem().Field(i)
		switch f.Kind() { //nolint:exhaustive // the columns' kinds
		case reflect.String:
			f.SetString("other")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int64:
			f.SetInt(f.Int() + 1)
		default:
			f.SetBytes([]byte("other"))
		}
		given := name == "Log" || name == "Seq" || name == "ID" || name == "Stored" || name == "Leaf" || name == "Hash"
		if r.Matches(row) != given {
			t.Errorf("a changed %s matches: %t, want %t", name, !given, given)
		}
	}
}
