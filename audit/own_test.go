package audit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
)

// A store that was restored has lost its last checkpoints, too. The witness has them.
func TestTheFirstRecordAsksTheWitness(t *testing.T) {
	t.Parallel()
	former := audit.Origin("site", "node", "before")
	var note string
	r := newRig(t, func(l *audit.Log) {
		if _, err := l.Store.OpenLog(t.Context(), former, true); err != nil {
			t.Fatal(err)
		}
		note = must((&audit.Checkpoint{Origin: former, Size: 5, Time: time.Now()}).Sign(l.Key))
		if err := l.Witness.Keep(t.Context(), note); err != nil {
			t.Fatal(err)
		}
	})
	r.add(1)
	var f audit.Former
	if err := r.log.Store.Records(t.Context(), 2, 0, 1, func(s *audit.Stored) error {
		first, err := audit.Read(s.Leaf, nil)
		if err == nil {
			err = json.Unmarshal(first.Extra, &f)
		}
		return err
	}); err != nil || f.Origin != former || f.Checkpoint != note || f.Lost != 5 {
		t.Errorf("%+v, %v", f, err)
	}
}
