package wire_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/wire"
)

func TestFramesHoldAnyBytes(t *testing.T) {
	t.Parallel()
	want := [][]byte{[]byte("{}"), []byte("1\n2\n\n"), {}, []byte("\n"), []byte("\x00\xff")}
	var batch []byte
	for _, f := range want {
		batch = wire.AppendFrame(batch, f)
	}
	if got := string(batch); got[:9] != "2\n{}\n5\n1\n" {
		t.Errorf("got %q at the start", got)
	}
	got, err := wire.Frames(batch, len(want))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("got %q, %v; want %q (-want +got):\n%s", got, err, want, diff)
	}
	if _, err := wire.Frames(batch, len(want)-1); !errors.Is(err, wire.ErrTooMany) {
		t.Errorf("got %v, want ErrTooMany", err)
	}
}

func TestDamagedFramesAreRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"no length":       "{}\n",
		"no line":         "2",
		"short":           "3\n{}\n",
		"long":            "1\n{}\n",
		"past the end":    "99\n{}\n",
		"no end":          "2\n{}",
		"negative":        "-2\n{}\n",
		"signed":          "+2\n{}\n",
		"padded":          "02\n{}\n",
		"spaced":          " 2\n{}\n",
		"CRLF":            "2\r\n{}\r\n",
		"overflow":        "99999999999999999999\n{}\n",
		"second damaged":  "2\n{}\nx\n",
		"empty line last": "2\n{}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := wire.Frames([]byte(in), 10); err == nil {
				t.Errorf("got %q, want an error", got)
			}
		})
	}
}
