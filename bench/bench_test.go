package main

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPayloadIsJSONOf512BytesThatCarriesItsNumber(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 7, 1_000_000} {
		b := payload(n)
		if len(b) != 512 || !json.Valid(b) {
			t.Errorf("payload(%d) is %d bytes, valid %t", n, len(b), json.Valid(b))
		}
		if got, err := payloadNumber(b); err != nil || got != n {
			t.Errorf("payloadNumber = %d, %v; want %d", got, err, n)
		}
	}
}

func TestMedianAndPercentile(t *testing.T) {
	t.Parallel()
	xs := []float64{4, 1, 3, 2}
	if got := median(xs); got != 2.5 {
		t.Errorf("median = %v, want 2.5", got)
	}
	if got := percentile(xs, 99); got != 4 {
		t.Errorf("p99 = %v, want 4", got)
	}
	if got := percentile(xs, 50); got != 2 {
		t.Errorf("p50 = %v, want 2", got)
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(percentile(nil, 50)) {
		t.Error("no values have a median")
	}
}

func TestRatioIsAboveOneWhenOursIsBetter(t *testing.T) {
	t.Parallel()
	sides := []contender{{name: "a", role: roleOurs}, {name: "b", role: rolePeer}, {name: "c", role: roleBare}, {name: "d", role: roleBare}}
	cases := map[string]struct {
		column       column
		values       [4]float64
		ratio, share float64
	}{
		"rate":  {column{key: "x", unit: "msg/s"}, [4]float64{50, 10, 80, 100}, 5, 0.5},
		"time":  {column{key: "x", unit: "ms", lower: true}, [4]float64{2, 10, 1, 4}, 5, 0.5},
		"short": {column{key: "x", unit: "ms", lower: true}, [4]float64{0, 10, 0, 0}, 1000, 1},
	}
	for name, c := range cases {
		r := result{measure: measure{name: name, contenders: sides}}
		for _, v := range c.values {
			r.rounds = append(r.rounds, map[string][]float64{"x": {v}})
		}
		rows := r.rows(c.column)
		if len(rows) != 1 || *rows[0].Ratio != c.ratio || *rows[0].Share != c.share {
			t.Errorf("%s: got %d rows, ratio %v, share %v; want ratio %v, share %v",
				name, len(rows), *rows[0].Ratio, *rows[0].Share, c.ratio, c.share)
		}
	}
}

func TestWhatIsMissingIsNull(t *testing.T) {
	t.Parallel()
	rows := result{measure: measure{name: "m"}}.rows(column{key: "x"})
	if len(rows) != 1 || rows[0].Ours != nil || rows[0].Ratio != nil || rows[0].Bare != nil {
		t.Errorf("got %+v, want one row without numbers", rows)
	}
}

func TestBareLoopDeliversAndSettlesAll(t *testing.T) {
	t.Parallel()
	const producers, each = 16, 50
	dir := t.TempDir()
	f := newFlow(0)
	q, err := openBareLoop(t.Context(), Setup{Dir: dir, Destinations: 1, Deliver: f.deliver})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for n := range each {
				if err := q.Enqueue(context.Background(), 0, payload(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n, err := f.settled(t.Context(), q, producers*each, time.Now().Add(10*time.Second))
	if err != nil || n != producers*each {
		t.Errorf("settled %d, %v; want %d", n, err, producers*each)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := openBare(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.number("SELECT count(*) FROM hf_message JOIN hf_body USING (seq) WHERE state = 2"); err != nil || n != producers*each {
		t.Errorf("file holds %d delivered, %v; want %d", n, err, producers*each)
	}
}

func TestPageOfDueRowsUsesItsIndex(t *testing.T) {
	t.Parallel()
	c, err := openBare(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var plan []string
	err = c.query("EXPLAIN QUERY PLAN "+barePage, func(row []driver.Value) {
		plan = append(plan, row[3].(string))
	}, int64(0), int64(0), int64(1))
	got := strings.Join(plan, "\n")
	if err != nil || !strings.Contains(got, "hf_message_due") || strings.Contains(got, "TEMP B-TREE") || strings.Contains(got, "SCAN") {
		t.Errorf("plan:\n%s\n%v", got, err)
	}
}
