package node_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/node"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// clockwork is a store in virtual time and its backups.
type clockwork struct {
	t       *testing.T
	db      *sqlite.DB
	folder  string
	conf    config.Backup
	log     lines
	health  func() (string, string, string)
	current func() (time.Time, int64)
	stop    func()
}

func newClockwork(t *testing.T, conf config.Backup) *clockwork {
	t.Helper()
	return &clockwork{t: t, db: open(t, t.TempDir()), folder: filepath.Join(t.TempDir(), "backups"), conf: conf}
}

func (c *clockwork) start() {
	ctx, cancel := context.WithCancel(c.t.Context())
	var ended <-chan error
	c.health, c.current, ended = node.Backups(ctx, c.db, c.folder, c.conf, slog.New(slog.NewTextHandler(&c.log, nil)))
	c.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	}
}

// pass lets time go by. A backup is work for the disk, and takes no virtual
// time but for its rests.
func (c *clockwork) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *clockwork) change() {
	c.t.Helper()
	if _, err := c.db.Enqueue(c.t.Context(), holdfast.Message{Destination: "a", Endpoint: "E"}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clockwork) names() (list []string) {
	c.t.Helper()
	entries, err := os.ReadDir(c.folder)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			list = append(list, e.Name())
		}
	}
	return list
}

// OI-14: backups are made by the clock while something changes, across
// restarts, and only so many stay.
func TestOI14BackupsByTheClock(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		c := newClockwork(t, config.Backup{Every: time.Hour, Hourly: 4, Daily: 2})
		defer c.db.Close()
		began := time.Now().UTC()
		c.start()
		if name, status, detail := c.health(); name != "backup" || status != api.OK || detail != "none has been made yet" {
			t.Errorf("health: %s %s %s", name, status, detail)
		}
		c.pass(59 * time.Second)
		if got := c.names(); len(got) != 0 {
			t.Errorf("after 59 s: %q", got)
		}
		c.pass(2 * time.Second)
		first := began.Add(time.Minute).Format("holdfast-20060102T150405Z.db")
		if d := cmp.Diff(c.names(), []string{first}); d != "" {
			t.Errorf("after a minute (-got +want):\n%s", d)
		}
		// Nothing changes: the copy stays, and is known to be current.
		c.pass(10 * time.Hour)
		if d := cmp.Diff(c.names(), []string{first}); d != "" {
			t.Errorf("nothing changed (-got +want):\n%s", d)
		}
		if at, size := c.current(); time.Since(at) > time.Hour+time.Minute || size == 0 {
			t.Errorf("current at %s, %d bytes; it is %s", at, size, time.Now())
		}
		for range 50 {
			c.change()
			c.pass(time.Hour)
		}
		got := c.names()
		if len(got) != 5 { // four of the last hours, and the last of the day before
			t.Errorf("after two days: %q", got)
		}
		if name := fmt.Sprintf("holdfast-%sT23", began.Add(24*time.Hour).Format("20060102")); !strings.HasPrefix(got[0], name) {
			t.Errorf("the daily one is %s, want %s…", got[0], name)
		}
		// A restart neither puts the next one off nor brings it forward.
		c.change()
		c.pass(30 * time.Minute)
		c.stop()
		c.start()
		if _, _, detail := c.health(); !strings.Contains(detail, got[4]) {
			t.Errorf("health after a restart: %s, want %s", detail, got[4])
		}
		c.pass(25 * time.Minute)
		if d := cmp.Diff(c.names(), got); d != "" {
			t.Errorf("25 minutes after a restart (-got +want):\n%s", d)
		}
		c.pass(6 * time.Minute)
		after := c.names()
		if after[len(after)-1] == got[4] {
			t.Errorf("31 minutes after a restart there is no backup later than %s", got[4])
		}
		// And one with nothing new makes none.
		c.stop()
		c.start()
		c.pass(2 * time.Hour)
		if d := cmp.Diff(c.names(), after); d != "" {
			t.Errorf("restarted without a change (-got +want):\n%s", d)
		}
		c.stop()
	})
}

// A folder that cannot be used is said once in the log and all the time in
// health, and tried again.
func TestOI14BackupsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		c := newClockwork(t, config.Backup{Every: time.Hour, Hourly: 4})
		defer c.db.Close()
		if err := os.WriteFile(c.folder, []byte("in the way"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.start()
		defer func() { c.stop() }()
		c.pass(3 * time.Hour)
		if _, status, detail := c.health(); status != api.Degraded || !strings.Contains(detail, c.folder) {
			t.Errorf("health: %s %s", status, detail)
		}
		if n := strings.Count(c.log.String(), "no backup was made"); n != 1 {
			t.Errorf("the log says it %d times:\n%s", n, c.log.String())
		}
		if at, _ := c.current(); !at.IsZero() {
			t.Errorf("current at %s", at)
		}
		if err := os.Remove(c.folder); err != nil {
			t.Fatal(err)
		}
		c.pass(11 * time.Minute)
		if got := c.names(); len(got) != 1 {
			t.Errorf("got %q", got)
		}
		if _, status, _ := c.health(); status != api.OK || !strings.Contains(c.log.String(), "backups are made again") {
			t.Errorf("health: %s; log:\n%s", status, c.log.String())
		}
	})
}

// What people put into the folder stays there, and so does a copy that a
// wrong clock has dated in the future.
func TestOI14OnlyBackupsAreRemoved(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		c := newClockwork(t, config.Backup{Every: time.Hour, Hourly: 1})
		defer c.db.Close()
		theirs := []string{"holdfast-20000101T000000Z.db.bak", "holdfast-2000.db", "holdfast-20001301T000000Z.db", "notes.txt", "holdfast-29990101T000000Z.db"}
		if err := os.MkdirAll(c.folder, 0o750); err != nil {
			t.Fatal(err)
		}
		for _, name := range theirs {
			if err := os.WriteFile(filepath.Join(c.folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.start()
		for range 5 {
			c.change()
			c.pass(time.Hour)
		}
		c.stop()
		got := c.names()
		for _, name := range theirs {
			if !slices.Contains(got, name) {
				t.Errorf("%s is gone", name)
			}
		}
		if len(got) != len(theirs)+1 {
			t.Errorf("got %q, want one backup besides", got)
		}
	})
}

func TestOI14WhichBackupsStay(t *testing.T) {
	t.Parallel()
	day := func(d, h, m int) string { return fmt.Sprintf("holdfast-200001%02dT%02d%02d00Z.db", d, h, m) }
	for name, c := range map[string]struct {
		have          []string
		hourly, daily int
		removed       []string
	}{
		"none":                     {nil, 1, 1, nil},
		"the last one always":      {[]string{day(1, 0, 0)}, 0, 0, nil},
		"several of one hour":      {[]string{day(1, 0, 0), day(1, 0, 30), day(1, 1, 0), day(1, 1, 15)}, 2, 0, []string{day(1, 1, 0), day(1, 0, 0)}},
		"hours without a backup":   {[]string{day(1, 0, 0), day(1, 5, 0), day(9, 7, 0)}, 3, 0, nil},
		"the last one of each day": {[]string{day(1, 0, 0), day(1, 5, 0), day(2, 3, 0), day(2, 7, 0)}, 0, 2, []string{day(2, 3, 0), day(1, 0, 0)}},
		"both":                     {[]string{day(1, 1, 0), day(1, 2, 0), day(2, 1, 0), day(2, 2, 0), day(2, 3, 0)}, 2, 2, []string{day(2, 1, 0), day(1, 1, 0)}},
	} {
		if d := cmp.Diff(node.TooMany(c.have, c.hourly, c.daily), c.removed); d != "" {
			t.Errorf("%s: removed (-got +want):\n%s", name, d)
		}
	}
}

func TestNoBackupsAreMadeWhereTheyAreOff(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		c := newClockwork(t, config.Backup{Every: config.Never})
		defer c.db.Close()
		c.start()
		c.change()
		c.pass(48 * time.Hour)
		if _, err := os.Stat(c.folder); !os.IsNotExist(err) {
			t.Errorf("the folder is there: %v", err)
		}
		if name, _, _ := c.health(); name != "" {
			t.Errorf("health has a check %q", name)
		}
		c.stop()
	})
}
