package keyring_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/internal/keyring"
)

// shelf holds values by place, in memory.
type shelf struct {
	table  string
	values []keyring.Value
	racing map[string]string // values that somebody changes behind the back of rotation
	pages  int
}

func (s *shelf) Table() string { return s.table }

func (s *shelf) Values(_ context.Context, after string, limit int) ([]keyring.Value, error) {
	s.pages++
	i, found := slices.BinarySearchFunc(s.values, after, func(v keyring.Value, after string) int { return cmpText(v.Place, after) })
	if found {
		i++
	}
	return slices.Clone(s.values[i:min(i+limit, len(s.values))]), nil
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (s *shelf) Replace(_ context.Context, changes []keyring.Change) error {
	for i := range s.values {
		v := &s.values[i]
		if to, ok := s.racing[v.Place]; ok {
			v.Sealed = to
		}
		for _, c := range changes {
			if c.Place == v.Place && c.Sealed == v.Sealed {
				v.Sealed = c.New
			}
		}
	}
	return nil
}

func (s *shelf) put(t *testing.T, r *keyring.Ring, place, plain string) {
	t.Helper()
	at := keyring.Context{Table: s.table, Row: place}
	sealed, err := r.Seal(at, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	s.values = append(s.values, keyring.Value{Place: place, At: at, Sealed: sealed})
}

func rotate(t *testing.T, r *keyring.Ring, holders []keyring.Holder, limit int) (all keyring.Page) {
	t.Helper()
	for range 1000 {
		p, err := r.Rotate(t.Context(), holders, all.Next, limit)
		if err != nil {
			t.Fatal(err)
		}
		all.Looked += p.Looked
		all.Resealed += p.Resealed
		all.Problems = append(all.Problems, p.Problems...)
		if all.Next = p.Next; p.Next == "" {
			return all
		}
	}
	t.Fatal("it does not end")
	return all
}

// Case 50: the key is changed while the values are in use, page by page.
func TestRotationSealsEachValueAnewAndOnlyOnce(t *testing.T) {
	t.Parallel()
	first, both := ring(t, key(1)), ring(t, key(2), key(1))
	empty, channels, subscriptions := &shelf{table: "a"}, &shelf{table: "channel"}, &shelf{table: "subscription"}
	for i := range 7 {
		channels.put(t, first, fmt.Sprint("c", i), "hunter2")
		subscriptions.put(t, first, fmt.Sprint("s", i), fmt.Sprint("secret ", i))
	}
	subscriptions.put(t, both, "s9", "new already")
	holders := []keyring.Holder{empty, channels, subscriptions, &shelf{table: "z"}}
	if p := rotate(t, both, holders, 3); p.Looked != 15 || p.Resealed != 14 || len(p.Problems) != 0 {
		t.Errorf("got %+v", p)
	}
	if p := rotate(t, both, holders, 3); p.Resealed != 0 {
		t.Errorf("a second run has changed %d", p.Resealed)
	}
	c, err := ring(t, key(2)).Count(t.Context(), holders) // without the former key
	want := keyring.Census{Values: map[string]int{keyring.ID(key(2)): 15}}
	if diff := cmp.Diff(want, c); err != nil || diff != "" {
		t.Errorf("%v, census (-want +got):\n%s", err, diff)
	}
	for i, v := range subscriptions.values[:7] {
		if got, err := ring(t, key(2)).Open(v.At, v.Sealed); err != nil || string(got) != fmt.Sprint("secret ", i) {
			t.Errorf("%s: got %q, %v", v.Place, got, err)
		}
	}
}

func TestASecretThatIsGivenDuringRotationStays(t *testing.T) {
	t.Parallel()
	first, both := ring(t, key(1)), ring(t, key(2), key(1))
	s := &shelf{table: "channel"}
	s.put(t, first, "mail", "old")
	given, err := both.Seal(s.values[0].At, []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	s.racing = map[string]string{"mail": given}
	rotate(t, both, []keyring.Holder{s}, 10)
	if got, err := both.Open(s.values[0].At, s.values[0].Sealed); err != nil || string(got) != "new" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWhatDoesNotOpenIsReportedAndLeft(t *testing.T) {
	t.Parallel()
	lost, r := ring(t, key(9)), ring(t, key(2), key(1))
	s := &shelf{table: "channel"}
	s.put(t, lost, "a", "x")
	s.put(t, ring(t, key(1)), "b", "x")
	s.put(t, r, "c", "x")
	s.values[2].At.Row = "moved"
	s.put(t, r, "d", "x")
	s.values[3].Err = errors.New("its settings are wrong")
	p := rotate(t, r, []keyring.Holder{s}, 2)
	var where []string
	for _, f := range p.Problems {
		where = append(where, f.Where)
	}
	if diff := cmp.Diff([]string{"channel/a", "channel/c", "channel/d"}, where); diff != "" || p.Resealed != 1 {
		t.Errorf("%d resealed, problems (-want +got):\n%s", p.Resealed, diff)
	}
	c, err := r.Count(t.Context(), []keyring.Holder{s})
	if err != nil || c.Broken != 3 || c.Values[keyring.ID(key(9))] != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestRotationNeedsAKeyAndAPlace(t *testing.T) {
	t.Parallel()
	if _, err := ring(t, nil, key(1)).Rotate(t.Context(), nil, "", 1); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("got %v", err)
	}
	if _, err := ring(t, key(1)).Rotate(t.Context(), []keyring.Holder{&shelf{table: "channel"}}, "nowhere/x", 1); err == nil {
		t.Error("a place of an unknown table was taken")
	}
}
