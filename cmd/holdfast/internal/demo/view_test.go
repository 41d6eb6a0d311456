package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
)

var shown = demo.Counts{
	Sent: 612, Waiting: 148, Delivered: 464, Effects: 464, DuplicatesRefused: 23, AcksLost: 22, Kills: 3,
	Notifications: demo.Tally{Sent: 120, Waiting: 30, Delivered: 88, Refused: 2, Duplicates: 5},
	Mails:         demo.Tally{Sent: 238, Waiting: 58, Delivered: 178, Refused: 2, Duplicates: 1},
	Calls:         demo.Tally{Sent: 240, Delivered: 233, Refused: 7, Duplicates: 4},
	Writes:        demo.Tally{Sent: 241, Delivered: 238, Refused: 3},
}

func seen(redraw, color bool, c demo.Counts, err error) string {
	var b bytes.Buffer
	demo.Seen(&b, redraw, color, c, err)
	return b.String()
}

const figures = `                     sent  delivered  waiting  refused  repeats
  orders              612        464      148        0       23
  notifications       120         88       30        2        5
  mails               238        178       58        2        1
  calls               240        233        0        7        4
  writes              241        238        0        3        0

  nodes killed 3; acks of orders lost 22; repeats recognised 33
  lost                  0
`

const account = `
The sites accepted 612 orders, 120 notifications, 240 calls and 241 writes,
while nodes were killed 3 times without warning, and each one arrived or was
refused for good, and is kept with the reason: 12. Answers were lost, so
that 33 came again, each with its id, by which it was recognised. All of
this was counted outside of the nodes.
The files are gone.
`

func TestLinesWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	want := "  12 s  central is away: orders 464/612, notifications 88/120, mails 178/238, calls 233/240, writes 238/241, refused 12, lost 0\n" + figures + account
	if diff := cmp.Diff(want, seen(false, false, shown, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTableIsDrawnInPlace(t *testing.T) {
	t.Parallel()
	const up = "\x1b[12A"
	tables := strings.Split(strings.ReplaceAll(seen(true, false, shown, nil), "\r\x1b[K", ""), up)
	if len(tables) != 3 {
		t.Fatalf("got %d tables, want 3 with %q between them", len(tables), up)
	}
	want := "[################........................]  12 of 30 s\ncentral is away\n\n" + figures
	for _, got := range tables[:2] {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	want = "[########################################]  30 of 30 s\ndone\n\n" + figures + account
	if diff := cmp.Diff(want, tables[2]); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(strings.Join(tables, "")) {
		if len(line) > demo.Width+1 {
			t.Errorf("%q is wider than %d columns", line, demo.Width)
		}
	}
}

func TestColourIsGivenUp(t *testing.T) {
	t.Parallel()
	if got := seen(true, true, shown, nil); !strings.Contains(got, "\x1b[32m  lost                  0\x1b[0m") {
		t.Errorf("got %q, want lost in green", got)
	}
	if got := seen(true, false, shown, nil); strings.Contains(got, "m") && strings.Contains(got, "\x1b[0m") {
		t.Errorf("got %q, want no colour", got)
	}
}

func TestAWrongAccountIsNotPraised(t *testing.T) {
	t.Parallel()
	bad := demo.Counts{Sent: 3, Delivered: 3, Lost: 1, Foreign: 1, Calls: demo.Tally{Sent: 3, Lost: 1, Doubled: 1}}
	got := seen(false, false, bad, bad.Err())
	for _, want := range []string{"lost                  2", "doubled               1", "foreign               1"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want it to hold %q", got, want)
		}
	}
	if strings.Contains(got, "each one arrived") {
		t.Errorf("got %s", got)
	}
	if got := seen(true, true, bad, errors.New("lost")); !strings.Contains(got, "\x1b[31m  lost") {
		t.Errorf("got %q, want lost in red", got)
	}
}

func TestNothingIsClaimedThatWasNotShown(t *testing.T) {
	t.Parallel()
	got := seen(false, false, demo.Counts{Sent: 2, Delivered: 2, Effects: 2}, nil)
	if !strings.Contains(got, "writes, and each\none arrived. All of this was counted") {
		t.Errorf("got %s", got)
	}
	got = seen(false, false, demo.Counts{}, nil)
	if !strings.Contains(got, "before a site had accepted anything") || strings.Contains(got, "arrived") {
		t.Errorf("got %s", got)
	}
}
