package audit_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
)

// What is put into a witness's place never has less than what was there.
func TestAWitnessThatIsReplacedKeepsTheLargest(t *testing.T) {
	t.Parallel()
	one, two := must(audit.OpenKey(filepath.Join(t.TempDir(), "one"))), must(audit.OpenKey(filepath.Join(t.TempDir(), "two")))
	sign := func(origin string, size int64, keys ...*audit.Key) string {
		t.Helper()
		c := audit.Checkpoint{Origin: origin, Size: size, Time: time.Unix(1_700_000_000, 0)}
		text, err := c.Sign(keys...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const a, b = "holdfast/s/n/a", "holdfast/s/n/b"
	text := ""
	add := func(note string) {
		t.Helper()
		var err error
		if text, err = audit.AddNote(text, note); err != nil {
			t.Fatal(err)
		}
	}
	add(sign(a, 5, one))
	add(sign(a, 3, one)) // late
	add(sign(a, 7, one, two))
	add(sign(a, 6, one))
	add(sign(a, 9, two))
	add(sign(b, 1, two))
	if want := sign(a, 6, one) + sign(a, 7, one, two) + sign(a, 9, two) + sign(b, 1, two); text != want {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
	before := text
	add(sign(a, 8, two))
	if text != before {
		t.Error("a smaller checkpoint has changed the text")
	}
	if _, err := audit.AddNote(text, "hello"); !errors.Is(err, audit.ErrCheckpoint) {
		t.Errorf("got %v", err)
	}
	text = "<html>\n" + strings.Repeat("x", 100) + "\n"
	if add(sign(a, 1, one)); text != sign(a, 1, one) {
		t.Errorf("of a page of somebody else: %q", text)
	}
}
