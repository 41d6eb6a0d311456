package webhook

import (
	"errors"
	"testing"
)

// What was used longest ago goes when there are too many; what cannot be made leaves nothing behind.
func TestWhatTargetsShareIsBounded(t *testing.T) {
	t.Parallel()
	var s shared[int, int]
	made := 0
	get := func(key int) (gone int) {
		t.Helper()
		value, gone, err := s.get(key, func() (int, error) { made++; return -key, nil })
		if value != -key || err != nil {
			t.Errorf("%d: got %d, %v", key, value, err)
		}
		return gone
	}
	for key := 1; key <= mostShared; key++ {
		if gone := get(key); gone != 0 {
			t.Errorf("%d went for %d", gone, key)
		}
	}
	get(1)
	if gone := get(1000); gone != -2 {
		t.Errorf("%d went, want -2, which was used longest ago", gone)
	}
	if get(1); made != mostShared+1 {
		t.Errorf("%d were made", made)
	}
	failed := errors.New("no")
	if _, _, err := s.get(2, func() (int, error) { return 7, failed }); !errors.Is(err, failed) || len(s.all) != mostShared {
		t.Errorf("got %v, and %d are kept", err, len(s.all))
	}
	sum := 0
	s.each(func(int) { sum++ })
	if sum != mostShared {
		t.Errorf("each is told of %d", sum)
	}
}
