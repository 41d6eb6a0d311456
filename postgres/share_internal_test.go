package postgres

import (
	"slices"
	"testing"
	"time"
)

// Issue 13, 2: a node that leaves a lane while a beat is under way that names it has no
// part of it after the answer.
func TestALaneThatIsLeftDuringABeatHasNoPart(t *testing.T) {
	t.Parallel()
	s := newSelf(&DB{})
	s.serving[1], s.serving[2], s.lanes = true, true, []int32{1, 2}
	beat := slices.Clone(s.lanes)
	s.leave(1)
	s.announced(beat, time.Now())
	if s.ready(1) == 0 || s.ready(2) > 0 {
		t.Errorf("ready in %s and %s, want the lane that was not left alone", s.ready(1), s.ready(2))
	}
	if !slices.Equal(s.lanes, []int32{2}) {
		t.Errorf("the next beat names %v, want 2 alone", s.lanes)
	}
}
