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
	// firstLine limits a batch on a line whose speed is unknown. Even most slow lines carry it
	// quickly, and a fast line is known after a few batches.
	firstLine = 16 << 10
	// leastLine limits a batch on the slowest line.
	leastLine = 8 << 10
	// LeastRate is how many bytes per second of a body the receiver demands. It is less than the
	// share of each of four requests on a line of 64 kbit/s. A slower sender holds room for little
	// gain.
	LeastRate = serve.LeastRate
	// mostAim limits the time that a batch should take: a live message waits behind what is already
	// on the line.
	mostAim = 10 * time.Second
	// usualRow is the least size of a message, in bytes.
	usualRow = 640
)

// pace finds how large a batch may be so that the line carries it in time: half the size of one
// that was cut off or took long, twice the size of one that got through quickly. It may be used
// concurrently: requests that end together count once.
type pace struct {
	mu   sync.Mutex
	line int // bytes of a batch; zero: the peer's limit
	row  int // bytes per message in the last request
}

func (p *pace) bytes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == 0 {
		return math.MaxInt
	}
	return p.line
}

// rows returns about how many messages a batch has.
func (p *pace) rows() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == 0 {
		return math.MaxInt
	}
	// A little less: a message too many would go in a request of its own.
	return max(p.line*9/10/max(p.row, usualRow), 1)
}

// aim returns how long a batch should take, given its time limit.
func aim(of time.Duration) time.Duration { return min(of/3, mostAim) }

// sent records a request: how many messages and bytes it had, whether the line cut it off, and how
// long it took out of its time limit.
func (p *pace) sent(rows, bytes int, cut bool, took, of time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row = bytes / max(rows, 1)
	switch half := max(bytes/2, leastLine); {
	case cut && p.line == 0:
		p.line = half
	case p.line == 0:
	case cut, took > aim(of) && 2*bytes >= p.line: // a small batch that took long waited for others
		p.line = min(p.line, half)
	case took < aim(of)/2:
		p.line = max(p.line, 2*bytes)
	}
}

// Patience returns how long a message of the given size may take. A message larger than a usual
// batch gets more time, since it cannot be made smaller.
func Patience(usual time.Duration, bytes int) time.Duration {
	if bytes <= leastLine {
		return usual
	}
	return usual + time.Duration(bytes)*time.Second/LeastRate
}

// Patience returns how long a request of the given size may take over this line, as far as the line
// is known. Each request that is cut off gives the next one more time.
func (c *Client) Patience(bytes int) time.Duration {
	usual := c.conf.Timeout
	line := c.pace.bytes()
	if bytes <= line || usual == 0 {
		return usual
	}
	return min(Patience(usual, bytes), usual+time.Duration(float64(aim(usual))*float64(bytes)/float64(line)))
}

// carry makes one request with messages, and learns from it what the line carries.
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
