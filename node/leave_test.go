package node_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/node"
)

// F1-123: a stop forgives what a database that was given up did not take, and
// nothing that stands beside it.
func TestAStopForgivesOnlyWhatItGaveUp(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%w: given up: %w", holdfast.ErrUnavailable, errors.New("closed")) // one error of two meanings
	unknown := fmt.Errorf("stop: 2 outcomes not recorded: %w", holdfast.ErrUnknown)
	stuck := errors.New("stop: attempts of m1 did not return")
	part := func(list ...error) error { return fmt.Errorf("dispatcher: %w", errors.Join(list...)) }
	for name, c := range map[string]struct {
		early   bool // nothing was given up
		err     error
		forgive bool
	}{
		"nothing":                              {forgive: true},
		"unavailable":                          {err: away, forgive: true},
		"unknown":                              {err: unknown, forgive: true},
		"several parts":                        {err: errors.Join(part(away), part(unknown)), forgive: true},
		"several of one part":                  {err: errors.Join(part(away, unknown)), forgive: true},
		"nothing was given up":                 {early: true, err: away},
		"nothing was given up, and is unknown": {early: true, err: unknown},
		"another error":                        {err: stuck},
		"another error beside it":              {err: errors.Join(part(away), part(stuck))},
		"another error beside it in one part":  {err: errors.Join(part(away, stuck))},
		"another error deep down":              {err: errors.Join(part(away), part(part(unknown, stuck), away))},
	} {
		if err := node.Left(!c.early, c.err); (err == nil) != c.forgive {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
