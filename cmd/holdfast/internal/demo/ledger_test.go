package demo_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
)

// The account must be able to come out wrong.
func TestTheLedgerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := func(b *demo.Book, id string) {
		b.Try(id)
		b.Accept(id)
		_ = b.Call(id, id)
		b.Reply(id, true, false, true)
	}
	for name, c := range map[string]struct {
		happens func(b *demo.Book)
		now     demo.Counts
		lost    int // at the end
		wrong   string
	}{
		"all well": {
			happens: func(b *demo.Book) { good(b, "a"); good(b, "b") },
			now:     demo.Counts{Sent: 2, Delivered: 2, Effects: 2},
		},
		"an ack is lost, and the repeat refused": {
			happens: func(b *demo.Book) {
				b.Try("a")
				b.Accept("a")
				_ = b.Call("a", "a")
				b.Reply("a", true, false, false)
				b.Reply("a", true, true, true)
			},
			now: demo.Counts{Sent: 1, Delivered: 1, Effects: 1, DuplicatesRefused: 1, AcksLost: 1},
		},
		"the program refuses a repeat": {
			happens: func(b *demo.Book) { good(b, "a"); _ = b.Call("a", "a") },
			now:     demo.Counts{Sent: 1, Delivered: 1, Effects: 1, DuplicatesRefused: 1, RepeatedCalls: 1},
		},
		"accepted and gone": {
			happens: func(b *demo.Book) { good(b, "a"); b.Try("b"); b.Accept("b") },
			now:     demo.Counts{Sent: 2, Waiting: 1, Delivered: 1, Effects: 1},
			lost:    1, wrong: "1 accepted messages had no effect",
		},
		"acknowledged without an effect": {
			happens: func(b *demo.Book) { b.Try("a"); b.Accept("a"); b.Reply("a", true, false, true) },
			now:     demo.Counts{Sent: 1, Delivered: 1, Lost: 1},
			lost:    1, wrong: "1 accepted messages had no effect",
		},
		"never answered, and so not lost": {
			happens: func(b *demo.Book) { b.Try("a") },
		},
		"an effect twice": {
			happens: func(b *demo.Book) { good(b, "a"); _ = b.Call("another key", "a") },
			now:     demo.Counts{Sent: 1, Delivered: 1, Doubled: 1},
			wrong:   "1 messages took effect more than once",
		},
		"an effect of nothing": {
			happens: func(b *demo.Book) { _ = b.Call("a", "a") },
			now:     demo.Counts{Effects: 1, Foreign: 1},
			wrong:   "1 effects belong to no message",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := demo.NewBook(nil)
			c.happens(b)
			if diff := cmp.Diff(c.now, b.Now()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			final := b.Final()
			if final.Lost != c.lost {
				t.Errorf("got %d lost at the end, want %d", final.Lost, c.lost)
			}
			if err := final.Err(); (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("got error %v, want %q", err, c.wrong)
			}
		})
	}
}

type full struct{ bytes.Buffer }

func (f *full) Write(b []byte) (int, error) {
	if f.Len() > 0 {
		return 0, errors.New("disk full")
	}
	return f.Buffer.Write(b)
}

func TestWhatIsNotInTheFileHasNotHappened(t *testing.T) {
	t.Parallel()
	file := &full{}
	b := demo.NewBook(file)
	if err := b.Call("a", "a"); err != nil {
		t.Error(err)
	}
	if err := b.Call("b", "b"); err == nil {
		t.Error("got no error, though the file could not be written")
	}
	if got := b.Now().Effects; got != 1 {
		t.Errorf("got %d effects, want 1", got)
	}
	if got, want := file.String(), `{"key":"a","order":"a","repeat":false}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
