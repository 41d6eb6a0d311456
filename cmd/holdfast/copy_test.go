package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// A node moves from its file into a database and goes on there; on the file no
// node starts any more, until the move is taken back.
func TestANodeMovesIntoADatabase(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its processes runs one command and ends")
	dsn, dir := pgtest.Shared(t).Database(t), t.TempDir()
	data := filepath.Join(dir, "data")
	secret := filepath.Join(dir, "secret")
	write(t, secret, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	more := fmt.Sprintf("destinations: {till: {url: %q, secret: {file: %s}}}\n", "http://"+freeAddress(t), secret)
	node := &child{t: t, address: freeAddress(t)}
	node.args = serveArgs(t, dir, "file", fmt.Sprintf("node: {id: file, source: shop}\nlisten: %s\ndata: data\n%s", node.address, more))
	t.Cleanup(node.kill)
	node.running()
	id := strings.Fields(succeeds(t, "send", "till", "Order", `{"n":1}`, "--url", node.url()))[0]
	copying := []string{"copy", "--from", "sqlite:" + data, "--to", dsn}
	refused(t, exitConflict, []string{"owned by another process", "stop it"}, copying...)
	node.kill()

	var c copied
	if err := json.Unmarshal([]byte(succeeds(t, append(copying, "--json")...)), &c); err != nil {
		t.Fatal(err)
	}
	if c.Messages != 1 || c.States["pending"] != 1 || c.Digest == "" || c.Resumed || strings.Contains(c.To, password(t, dsn)) {
		t.Errorf("copy said %+v", c)
	}
	var again copied // F1-113: an end that is reached twice is one
	if err := json.Unmarshal([]byte(succeeds(t, append(copying, "--json")...)), &again); err != nil || again.Digest != c.Digest || !again.Resumed {
		t.Errorf("the same copy again said %+v, %v", again, err)
	}
	refused(t, exitConflict, []string{"moved to postgres://", "copy --undo"}, node.args[1:]...)
	if report, _, code := command(t, "doctor", "--data", data); code != exitFailing || !strings.Contains(report, "moved to postgres://") {
		t.Errorf("doctor ended with %d and said\n%s", code, report)
	}
	shared := sharing(t, dsn, "a", more).running()
	if got := succeeds(t, "messages", "show", id, "--url", shared.url()); !strings.Contains(got, "pending") {
		t.Errorf("messages show said\n%s", got)
	}
	back := filepath.Join(dir, "back")
	refused(t, exitConflict, []string{`"a" (process `, "stop the running nodes"}, "copy", "--from", dsn, "--to", "sqlite:"+back)
	if err := shared.end(); err != nil {
		t.Error(err)
	}
	if got := succeeds(t, "copy", "--from", dsn, "--to", "sqlite:"+back); !strings.Contains(got, "1 pending") || strings.Contains(got, password(t, dsn)) {
		t.Errorf("copy said\n%s", got)
	}
	report, _, code := command(t, "doctor", "--config", shared.args[len(shared.args)-1])
	if code != exitFailing || !strings.Contains(report, "moved to sqlite:"+back) {
		t.Errorf("doctor ended with %d and said\n%s", code, report)
	}

	// Only what no node has used can be taken back.
	undo := func(from string, rest ...string) []string {
		return append([]string{"copy", "--undo", "--from", from}, rest...)
	}
	refused(t, exitConflict, []string{"moved to sqlite:" + back}, undo("sqlite:"+data, "--to", dsn)...)
	if got := succeeds(t, undo(dsn, "--to", "sqlite:"+back)...); !strings.Contains(got, "again; and refuse sqlite:"+back) || strings.Contains(got, password(t, dsn)) {
		t.Errorf("copy --undo said %q", got)
	}
	refused(t, exitConflict, []string{"moved to postgres://"}, "serve", "--data", back)
	refused(t, exitConflict, []string{"was used since the copy ended", "the way back is a copy"}, undo("sqlite:"+data, "--to", dsn)...)
	if got := succeeds(t, undo("sqlite:"+data, "--lost")...); !strings.Contains(got, "can use sqlite:"+data+" again; the copy at postgres://") {
		t.Errorf("copy --undo said %q", got)
	}
	refused(t, exitNotFound, []string{"was not moved"}, undo("sqlite:"+data, "--lost")...)
	node.running()
}

func TestCopyNeedsTwoStores(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "each of its processes runs one command and ends")
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"--from is missing":         {},
		"--to is missing":           {"--from", "sqlite:" + dir},
		"neither sqlite:FOLDER nor": {"--from", "mysql://hunter2@x/y", "--to", "sqlite:" + dir},
		"names no folder":           {"--from", "sqlite:", "--to", "sqlite:" + dir},
		"without sslmode":           {"--from", "sqlite:" + dir, "--to", "postgres://u:hunter2@db.example/x"},
		"the variable NOBODY is":    {"--from", "env:NOBODY", "--to", "sqlite:" + dir},
		"--undo takes --to as well": {"--undo", "--from", "sqlite:" + dir},
		"or --lost if":              {"--undo", "--from", "sqlite:" + dir, "--to", "sqlite:" + dir, "--lost"},
		"--lost goes with --undo":   {"--from", "sqlite:" + dir, "--to", "sqlite:" + dir, "--lost"},
	} {
		refused(t, exitUsage, []string{want}, append([]string{"copy"}, args...)...)
		if _, stderr, _ := command(t, append([]string{"copy"}, args...)...); strings.Contains(stderr, "hunter2") {
			t.Errorf("it said %q", stderr)
		}
	}
	refused(t, exitNotFound, []string{"no such file"}, "copy", "--from", "sqlite:"+dir, "--to", "sqlite:"+filepath.Join(dir, "other"))
}
