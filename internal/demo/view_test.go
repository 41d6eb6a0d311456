package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/demo"
)

var shown = demo.Counts{Sent: 612, Waiting: 148, Delivered: 464, Effects: 464, DuplicatesRefused: 23, AcksLost: 22, Kills: 3}

func seen(redraw, color bool, c demo.Counts, err error) string {
	var b bytes.Buffer
	demo.Seen(&b, redraw, color, c, err)
	return b.String()
}

const figures = `  sent                    612  accepted by the sender
  waiting                 148  of these, without an ack so far
  delivered               464  acknowledged; 22 acks were lost on the way
  duplicates refused       23  repeats that had no second effect
  lost                      0
`

const account = `
612 messages were accepted while nodes were killed 3 times without warning,
and each one arrived: what a sender has accepted is on its disk. 22 acks
were lost, so that messages came again, with the same id, and no repeat had
an effect: 464 effects, counted outside of both nodes.
The files are gone.
`

func TestLinesWhereThereIsNoTerminal(t *testing.T) {
	t.Parallel()
	want := "  12 s  the receiver is away: sent 612, waiting 148, delivered 464, duplicates refused 23, lost 0\n" + figures + account
	if diff := cmp.Diff(want, seen(false, false, shown, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTableIsDrawnInPlace(t *testing.T) {
	t.Parallel()
	const up = "\x1b[8A"
	tables := strings.Split(strings.ReplaceAll(seen(true, false, shown, nil), "\r\x1b[K", ""), up)
	if len(tables) != 3 {
		t.Fatalf("got %d tables, want 3 with %q between them", len(tables), up)
	}
	want := "[################........................]  12 of 30 s\nthe receiver is away\n\n" + figures
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
	if got := seen(true, true, shown, nil); !strings.Contains(got, "\x1b[32m  lost                      0\x1b[0m") {
		t.Errorf("got %q, want lost in green", got)
	}
	if got := seen(true, false, shown, nil); strings.Contains(got, "m") && strings.Contains(got, "\x1b[0m") {
		t.Errorf("got %q, want no colour", got)
	}
}

func TestAWrongAccountIsNotPraised(t *testing.T) {
	t.Parallel()
	bad := demo.Counts{Sent: 3, Delivered: 3, Lost: 1, Doubled: 1, Foreign: 1}
	got := seen(false, false, bad, bad.Err())
	for _, want := range []string{"lost                      1", "doubled                   1", "foreign                   1"} {
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
	if !strings.Contains(got, "2 messages were accepted, and each one arrived. No ack was lost this time: 2\neffects") {
		t.Errorf("got %s", got)
	}
}
