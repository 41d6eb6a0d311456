package cursor_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/cursor"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	for _, seq := range []int64{1, 2, 35, 36, 44027, 1 << 40, math.MaxInt64} {
		if got, err := cursor.Parse(cursor.Format(seq)); err != nil || got != seq {
			t.Errorf("%q of %d: got %d, %v", cursor.Format(seq), seq, got, err)
		}
	}
	if got := cursor.Format(0); got != "" {
		t.Errorf("the end of a list: got %q, want nothing", got)
	}
}

// F1-47: a text that no page gave is no place.
func TestWhatNoPageGaveIsRefused(t *testing.T) {
	t.Parallel()
	good := cursor.Format(44027)
	for _, after := range []string{
		"xyz", "1", "2", "-1", "?", "0", "000", "0000", strings.ToUpper(good), " " + good, good + "0", good[1:], "+" + good,
		"y" + good[1:], good[:len(good)-1], "ZZZZZZZZZZZZZZZZZ", strings.Repeat("z", 300),
	} {
		_, err := cursor.Parse(after)
		fault, ok := errors.AsType[*holdfast.FieldError](err)
		if !errors.Is(err, holdfast.ErrInvalid) || !ok || fault.Field != "after" || len(fault.Value) > 90 {
			t.Errorf("%q: got %v, want ErrInvalid that names after", after, err)
		}
	}
}

// A place of several numbers is read as it was written, and nothing else is.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, want := range [][]int64{{0, 0, 0}, {1, 2, 3}, {0, math.MaxInt64, 7}} {
		text := cursor.FormatPlace(want...)
		if got, err := cursor.ParsePlace(text, 3); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
		for _, other := range []string{text + "0", text[1:], strings.ToUpper(text) + "A", "." + text} {
			if got, err := cursor.ParsePlace(other, 3); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%s: got %v, %v", other, got, err)
			}
		}
		for _, n := range []int{1, 2, 4} {
			if got, err := cursor.ParsePlace(text, n); !errors.Is(err, holdfast.ErrInvalid) {
				t.Errorf("%s as %d numbers: got %v, %v", text, n, got, err)
			}
		}
	}
	if got, err := cursor.Parse(cursor.FormatPlace(0)); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("0 as a row: got %d, %v", got, err)
	}
}
