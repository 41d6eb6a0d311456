package sqlite_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var kills = flag.Int("kills", 3, "how often the false alarm test kills a process, in each way")

// OI-12: a process that was killed leaves no damage, whatever it was doing: in
// its first start, with a log that is merged all the time, without syncs, and on
// a disk that is full. No start takes what it has left for damage. Any number of
// kills by -args -kills=N.
func TestNoFalseAlarm(t *testing.T) {
	racetest.Without(t, "the process that writes would be the same, only slower")
	for name, way := range map[string]struct {
		durability string
		checkpoint int
		disk       string
		most       int // milliseconds of a life
	}{
		"full":       {"full", 4000, "", 300},
		"merged":     {"full", 3, "", 300},
		"normal":     {"normal", 40, "", 300},
		"small disk": {"full", 4000, "6m", 900},
	} {
		t.Run(name, func(t *testing.T) {
			folder, lines := t.TempDir(), 0
			if way.disk != "" {
				folder = newSmallDisk(t, way.disk).folder
			}
			path := filepath.Join(folder, "0", "holdfast.db")
			for n := range *kills {
				every := 10
				if way.disk != "" {
					every = 3 // it is full for the second and the third
				}
				if n%every == every-1 { // and in a first start
					must(os.RemoveAll(filepath.Dir(path)))
					path = filepath.Join(folder, fmt.Sprint(n), "holdfast.db")
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
					t.Fatal(err)
				}
				c, out := start(t, "surge", path, way.durability, fmt.Sprint("k", n), fmt.Sprint(way.checkpoint))
				heard := make(chan int)
				if n == 0 { // it works at all
					out.line(t)
					lines++
				}
				go func() { heard <- len(out.all()) }()
				time.Sleep(time.Duration(rand.IntN(way.most)) * time.Millisecond)
				if err := c.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				lines += <-heard
				_ = c.Wait()
				for _, name := range names(t, filepath.Dir(path)) {
					if strings.Contains(name, "damaged") {
						t.Fatalf("kill %d: %s", n, name)
					}
				}
			}
			if way.disk != "" { // room for the last start: on a full disk it may be refused, which is no alarm
				must(unix.Mount("none", folder, "tmpfs", unix.MS_REMOUNT, "size=64m"))
			}
			db := open(t, path, sqlite.Options{Source: "test", Normal: way.durability == "normal"})
			if d := db.Damage(); len(d) > 0 {
				t.Errorf("set aside: %v", &d[0])
			}
			if way.disk == "" {
				audit(t, db)
			}
			if r := db.Check(t.Context()); r.Err != nil || r.Broken > 0 {
				t.Errorf("check: %+v", r)
			}
			shut(t, db)
			if t.Logf("%d lines", lines); lines == 0 {
				t.Error("the processes did nothing: the test did not test")
			}
		})
	}
}
