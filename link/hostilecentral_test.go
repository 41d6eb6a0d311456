package link_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/link"
)

// F1-14: a central that has been taken over cannot fill a site's memory, nor
// keep it busy with commands that never end.
func TestAHostileCentralCostsASiteLittle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id       func(n int) string
		commands int // in one answer to a poll
		polls    int // at most so many in a minute
		answers  int // at least so many commands are answered in it
	}{
		"ids of 7 MiB":      {id: func(n int) string { return strings.Repeat("x", 7<<20) + fmt.Sprint(n) }, commands: 1, polls: 30},
		"ids of 700 KiB":    {id: func(n int) string { return strings.Repeat("x", 700<<10) + fmt.Sprint(n) }, commands: 1, polls: 30},
		"no id":             {id: func(int) string { return "" }, commands: 1, polls: 30},
		"without a pause":   {id: func(n int) string { return fmt.Sprintf("c-%d", n) }, commands: 1, polls: 620, answers: 400},
		"more than it does": {id: func(n int) string { return fmt.Sprintf("c-%d", n) }, commands: 200, polls: 620, answers: 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			within(t, func(w *world) {
				p := w.site("plant-7")
				var mu sync.Mutex
				polls, answers := 0, 0
				w.away()
				w.serve((*http.Server).Serve, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					if r.URL.Path == link.AnswersPath {
						answers++
						_, _ = fmt.Fprint(rw, `{}`)
						return
					}
					polls++
					_, _ = fmt.Fprint(rw, `{"incarnation":"i","commands":[`)
					for n := range c.commands {
						_, _ = fmt.Fprintf(rw, `%s{"id":%q,"verb":"dance"}`, strings.Repeat(",", min(n, 1)), c.id(polls*c.commands+n))
					}
					_, _ = fmt.Fprint(rw, `]}`)
				}))
				p.run(false)
				time.Sleep(time.Minute)
				p.stop()
				mu.Lock()
				defer mu.Unlock()
				if polls > c.polls || polls < 2 || answers < c.answers || c.answers == 0 && answers > 0 {
					t.Errorf("%d polls and %d answers in a minute, want at most %d and at least %d", polls, answers, c.polls, c.answers)
				}
			})
		})
	}
}
