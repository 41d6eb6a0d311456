package gate

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// recheckEvery is how long a caller may go on to read a long answer after the token or the session has ended.
const recheckEvery = 5 * time.Second

// whileValid returns a context that ends soon after the token or the session of a request does, or after it may do something
// else than it might. What has gone out by then has gone out; the caller may ask again with what the token is
// now. As long as the store cannot say, the answer goes on: it reads the same store. end must be called.
func (g *gate) whileValid(ctx context.Context, r *http.Request, who *caller) (valid context.Context, end func()) {
	valid, cancel := context.WithCancel(ctx)
	if who.free {
		return valid, cancel
	}
	var check sync.WaitGroup
	check.Go(func() {
		tick := time.NewTicker(recheckEvery)
		defer tick.Stop()
		for {
			select {
			case <-valid.Done():
				return
			case <-tick.C:
			}
			now, p := g.authenticate(r.WithContext(valid), false)
			if p == nil && now.name == who.name && now.may.String() == who.may.String() && !now.free || p != nil && p.Status >= http.StatusInternalServerError {
				continue
			}
			cancel()
			return
		}
	})
	return valid, func() {
		cancel()
		check.Wait()
	}
}
