package keyring_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/keyring"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, keyring.KeySize) }

func ring(t *testing.T, newest []byte, former ...[]byte) *keyring.Ring {
	t.Helper()
	r, err := keyring.New(newest, former...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seal(t *testing.T, r *keyring.Ring, plain string) string {
	t.Helper()
	s, err := r.Seal(here(), []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func here() keyring.Context {
	return keyring.Context{Table: "subscription", Row: "17", Column: "secret"}
}

func TestASecretOpensWhereItWasSealedAndNowhereElse(t *testing.T) {
	t.Parallel()
	r := ring(t, key(1))
	sealed := seal(t, r, "hunter2")
	if got, err := r.Open(here(), sealed); err != nil || string(got) != "hunter2" {
		t.Errorf("got %q, %v", got, err)
	}
	if strings.Contains(sealed, "hunter2") || strings.Contains(keyring.Mark(sealed), sealed[20:]) {
		t.Errorf("%s shows too much", sealed)
	}
	if again := seal(t, r, "hunter2"); again == sealed {
		t.Error("two values of one secret are equal")
	}
	for name, at := range map[string]keyring.Context{
		"table":  {Table: "channel", Row: "17", Column: "secret"},
		"row":    {Table: "subscription", Row: "18", Column: "secret"},
		"column": {Table: "subscription", Row: "17", Column: "former"},
		"seam":   {Table: "subscription1", Row: "7", Column: "secret"},
	} {
		if got, err := r.Open(at, sealed); !errors.Is(err, keyring.ErrBroken) {
			t.Errorf("another %s: got %q, %v", name, got, err)
		}
	}
}

func TestAChangedValueDoesNotOpen(t *testing.T) {
	t.Parallel()
	r := ring(t, key(1), key(2))
	sealed := seal(t, r, "hunter2")
	other := strings.Replace(sealed, keyring.ID(key(1)), keyring.ID(key(2)), 1)
	for _, bad := range []string{"", "hunter2", "hf1", "hf1.", sealed[:len(sealed)-2], sealed + "AA", sealed + "\n", "hf2" + sealed[3:], other, sealed[:17], sealed[:20]} {
		if got, err := r.Open(here(), bad); !errors.Is(err, keyring.ErrBroken) {
			t.Errorf("%q: got %q, %v", bad, got, err)
		}
	}
}

// Case 50: a wrong key says which one is needed, and from where.
func TestAMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	sealed := seal(t, ring(t, key(1)), "hunter2")
	for name, r := range map[string]*keyring.Ring{"wrong": ring(t, key(2)), "none": ring(t, nil), "nil": nil, "zero": {}} {
		_, err := r.Open(here(), sealed)
		missing, ok := errors.AsType[*keyring.MissingKeyError](err)
		if !ok || missing.ID != keyring.ID(key(1)) || !errors.Is(err, keyring.ErrKey) || !strings.Contains(err.Error(), "secrets.former") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestFormerKeysOpenAndTheNewestSeals(t *testing.T) {
	t.Parallel()
	old := seal(t, ring(t, key(1)), "hunter2")
	r := ring(t, key(2), key(1), key(2))
	if got, err := r.Open(here(), old); err != nil || string(got) != "hunter2" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, want := keyring.KeyOf(seal(t, r, "x")), keyring.ID(key(2)); got != want {
		t.Errorf("sealed with %s, want %s", got, want)
	}
	if got := r.Former(); len(got) != 1 || got[0] != keyring.ID(key(1)) {
		t.Errorf("former keys are %v", got)
	}
}

func TestNothingIsSealedWithoutAKey(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*keyring.Ring{"former only": ring(t, nil, key(1)), "nil": nil, "zero": {}} {
		if s, err := r.Seal(here(), []byte("hunter2")); !errors.Is(err, keyring.ErrNoKey) || !strings.Contains(err.Error(), "holdfast keys create") {
			t.Errorf("%s: got %q, %v", name, s, err)
		}
	}
	for _, bad := range [][]byte{{}, key(1)[1:], append(key(1), 1)} {
		if _, err := keyring.New(bad); err == nil {
			t.Errorf("a key of %d bytes was taken", len(bad))
		}
	}
}
