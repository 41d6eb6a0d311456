package transport

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

const (
	// firstLine is what a batch may weigh on a line that is not known yet. Few
	// are so slow that it takes long; a fast one is known after a few batches.
	firstLine = 16 << 10
	// leastLine is what a batch may weigh on the slowest line.
	leastLine = 8 << 10
	// LeastRate is how many bytes a second of a request's body the receiver's
	// deadline asks for: less than each of four requests gets that share a line
	// of 64 kbit/s. Who sends less holds room and brings nothing.
	LeastRate = serve.LeastRate
	// mostAim bounds how long a batch should take: what goes ahead of a live
	// message is what is on the line already.
	mostAim = 10 * time.Second
	// usualRow is what a message weighs at least.
	usualRow = 640
)

// pace is how large a batch may be so that the line carries it in time: half
// of what was cut off or took long, twice what got through quickly. It may be
// used concurrently: requests that end together count once.
type pace struct {
	mu   sync.Mutex
	line int // bytes of a batch; zero: as many as the peer takes
	row  int // bytes of a message, in the last request
}

func (p *pace) bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == 0 {
		return math.MaxInt
	}
	return p.line
}

// rows is how many messages a batch has about.
func (p *pace) rows() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == 0 {
		return math.MaxInt
	}
	// A little less: one message over would go in a request of its own.
	return max(p.line*9/10/max(p.row, usualRow), 1)
}

// aim is how long a batch should take of the time that it has.
func aim(of time.Duration) time.Duration { return min(of/3, mostAim) }

// sent notes a request of so many messages and bytes: whether the line cut it
// off, else how long it took of the time that it had.
func (p *pace) sent(rows, bytes int, cut bool, took, of time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row = bytes / max(rows, 1)
	switch half := max(bytes/2, leastLine); {
	case cut && p.line == 0:
		p.line = half
	case p.line == 0:
	case cut, took > aim(of) && 2*bytes >= p.line: // a small one that took long waited for others
		p.line = min(p.line, half)
	case took < aim(of)/2:
		p.line = max(p.line, 2*bytes)
	}
}

// Patience is how long a message of so many bytes may take that alone has more
// than a batch of usual size: it cannot be made smaller.
func Patience(usual time.Duration, bytes int) time.Duration {
	if bytes <= leastLine {
		return usual
	}
	return usual + time.Duration(bytes)*time.Second/LeastRate
}

// Patience is how long a request of so many bytes may take over this line, as
// far as it is known; with each that is cut off the next one has more.
func (c *Client) Patience(bytes int) time.Duration {
	usual := c.conf.Timeout
	line := c.pace.bytes()
	if bytes <= line || usual == 0 {
		return usual
	}
	return min(Patience(usual, bytes), usual+time.Duration(float64(aim(usual))*float64(bytes)/float64(line)))
}

// carry makes one request with messages, and learns from it what the line
// carries.
func (c *Client) carry(ctx context.Context, contentType string, rows int, body []byte) (answer, *holdfast.Failure) {
	if most := c.Patience(len(body)); most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	began, of := time.Now(), 3*mostAim
	if at, ok := ctx.Deadline(); ok {
		of = min(of, time.Until(at))
	}
	a, fail := c.post(ctx, c.url, contentType, body)
	switch {
	case fail == nil:
		cut := a.status == http.StatusRequestTimeout || a.status == http.StatusGatewayTimeout
		if through := a.status >= 200 && a.status < 300; cut || through {
			c.pace.sent(rows, len(body), cut, time.Since(began), of)
		}
	case fail.MaybeDelivered && (fail.Code == CodeTimeout || fail.Code == CodeLost):
		c.pace.sent(rows, len(body), true, time.Since(began), of)
	}
	return a, fail
}
