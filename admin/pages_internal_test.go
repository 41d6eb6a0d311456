package admin

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// A page over many lists ends by time, and the next one goes on with the next list.
func TestAPageOverManyListsEndsByTime(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		names := []string{"a", "b", "c"}
		slow := func(name, _ string, _ int) ([]string, string, error) {
			time.Sleep(2 * longestPage) // of virtual time
			return []string{name}, "", nil
		}
		for after, want := range map[string]string{"": "a@b", "@b": "b@c", "@c": "c"} {
			got, next, err := pageOver(names, after, 10, slow)
			if err != nil || len(got) != 1 || got[0]+next != want {
				t.Errorf("after %q: got %v, next %q and %v, want %q", after, got, next, err, want)
			}
		}
	})
}
