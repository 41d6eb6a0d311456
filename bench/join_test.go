package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

// count opens the one file of a contender and counts a table's rows.
func count(t *testing.T, dir, table string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v; want one", files, err)
	}
	db, err := modernc().open(files[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func call(t *testing.T, l load, times int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ctx := context.Background()
	q, err := l.open(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := range times {
		if err := q.do(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEveryContenderWritesTheOrderAndItsMessage(t *testing.T) {
	t.Parallel()
	const calls = 3
	tables := map[string][]load{
		"hf_message":     {ourIn(modernc()), ourDo(modernc()), ourOwnDo(), ourIn(mattn()), ourDo(mattn()), joinByHand(modernc(), rolePeer), joinByHand(mattn(), roleBare), bareJoin()},
		"goqite":         {joining(goqiteRaw())},
		"backlite_tasks": {joining(backliteDefault()), joining(backliteTuned())},
		"river_job":      {joining(riverDefault())},
	}
	for table, loads := range tables {
		for _, l := range loads {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				dir := call(t, l, calls)
				if orders, messages := count(t, dir, "orders"), count(t, dir, table); orders != calls || messages != calls {
					t.Errorf("%d orders and %d messages, want %d", orders, messages, calls)
				}
			})
		}
	}
}

func TestEveryContenderProcessesWhatItIsGiven(t *testing.T) {
	t.Parallel()
	const calls = 3
	for _, batch := range []int{1, batchSize} {
		for _, l := range []load{ourProcess(batch, true), ourProcess(batch, false), processByHand(batch), bareProcess(batch)} {
			t.Run(fmt.Sprintf("%s by %d", l.name, batch), func(t *testing.T) {
				t.Parallel()
				dir := call(t, l, calls)
				if orders, ids := count(t, dir, "orders"), count(t, dir, "hf_inbox"); orders != calls*batch || ids != calls*batch {
					t.Errorf("%d orders and %d ids, want %d", orders, ids, calls*batch)
				}
			})
		}
	}
}
