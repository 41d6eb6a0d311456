package fanout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/fanout"
)

// The retries come after these times since the first attempt (WH-03), and backoff may be off or plain (WH-08).
func TestSchedules(t *testing.T) {
	t.Parallel()
	usual := fanout.DefaultSchedule()
	plain, off, capped := usual, usual, usual
	plain.Backoff, off.Backoff, capped.Cap = fanout.Plain, fanout.Off, time.Minute
	for name, test := range map[string]struct {
		of   fanout.Schedule
		want []string
	}{
		"usual":  {usual, []string{"25s", "2m5s", "8m45s", "35m25s", "2h22m5s", "9h28m45s", "23h55m25s"}},
		"plain":  {plain, []string{"1s", "5s", "21s", "1m25s", "5m41s", "22m45s", "1h31m1s"}},
		"off":    {off, []string{"0s", "0s", "0s", "0s", "0s", "0s", "0s"}},
		"capped": {capped, []string{"25s", "1m25s", "2m25s", "3m25s", "4m25s", "5m25s", "6m25s"}},
	} {
		p := test.of.Policy()
		var got []string
		at := time.Duration(0)
		for n := 0; !p.Spent(n + 1); n++ {
			at += p.Next(n, 0)
			got = append(got, at.String())
		}
		if d := cmp.Diff(got, test.want); d != "" || test.of.Validate() != nil || p.Validate() != nil {
			t.Errorf("%s: %v, %v (-got +want):\n%s", name, test.of.Validate(), p.Validate(), d)
		}
	}
	if (fanout.Schedule{Backoff: "often", Base: 0.5, Retries: -1}).Validate() == nil {
		t.Error("a schedule that is none is taken")
	}
}
