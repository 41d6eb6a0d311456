package holdfast_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
)

// A bundle is in normal form whatever its caller has left out, and stays the caller's.
func TestABundleInNormalForm(t *testing.T) {
	t.Parallel()
	const id = "0195a5f0-0000-7000-8000-00000000000a"
	b := holdfast.Bundle{
		Kind: "event", ID: holdfast.ID(strings.ToUpper(id)), Payload: []byte("x"),
		Messages: []holdfast.Message{{ID: "a", Destination: "d", Endpoint: "e"}, {ID: "b", Source: "own", Destination: "d", Endpoint: "e"}},
		Rows:     make([]holdfast.Row, 2),
	}
	before := slices.Clone(b.Messages)
	n, err := b.Normalize("plant-1")
	if err != nil {
		t.Fatal(err)
	}
	if n.ID != id || n.Source != "plant-1" || n.Messages[0].Source != "plant-1" || n.Messages[1].Source != "own" || string(n.Messages[1].Payload) != "x" {
		t.Errorf("got %+v", n)
	}
	if diff := cmp.Diff(b.Messages, before); diff != "" || b.Source != "" {
		t.Errorf("the caller's has changed (-got +want):\n%s", diff)
	}
	b.Messages[0].Destination = ""
	if _, err := b.Normalize("plant-1"); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("a message without a destination: %v", err)
	}
}
