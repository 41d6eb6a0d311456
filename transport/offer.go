package transport

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// HTTP headers of the protocol.
const (
	// HeaderBatch announces, in every reply, that batches are taken:
	// "max=512, bytes=4194304". Unknown parts are skipped.
	HeaderBatch = "Rf-Batch"
	// HeaderBudget is how many milliseconds the sender still waits. What the
	// receiver has not begun by then, it does not begin.
	HeaderBudget = "Rf-Budget-Ms"
)

const (
	defaultBatchRows  = 512
	defaultBatchBytes = 4 << 20
	// unstatedBytes is what a batch may weigh if a peer announces only rows:
	// what common proxies let through.
	unstatedBytes = 1 << 20
	// cutFor is how long a limit that was found by a 413 is kept.
	cutFor = time.Hour
)

func formatOffer(rows, bytes int) string { return fmt.Sprintf("max=%d, bytes=%d", rows, bytes) }

// parseOffer reads a HeaderBatch. Zero rows: the peer takes no batches.
func parseOffer(text string) (rows, bytes int) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			continue
		}
		switch name {
		case "max":
			rows = n
		case "bytes":
			bytes = n
		}
	}
	return rows, bytes
}

// offer is what a client knows of how much its peer takes at once. It may be
// used concurrently.
type offer struct {
	mu          sync.Mutex
	rows, bytes int // announced; zero rows: nothing is, send one by one
	// What a 413, or a peer that did not understand a batch, has taught; it is
	// kept for cutFor. A proxy's limit is one of bytes, and nobody announces it.
	cutRows, cutBytes int // zero: no limit
	cutAt             time.Time
}

// limits returns how many messages and bytes one batch may have, out of at
// most rows that the caller wants; one row means no batch.
func (o *offer) limits(most int) (rows, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh()
	rows, bytes = min(o.rows, most), o.bytes
	if bytes == 0 {
		bytes = unstatedBytes
	}
	if o.cutRows > 0 {
		rows = min(rows, o.cutRows)
	}
	if o.cutBytes > 0 {
		bytes = min(bytes, o.cutBytes)
	}
	return max(rows, 1), bytes
}

func (o *offer) refresh() {
	if time.Since(o.cutAt) >= cutFor {
		o.cutRows, o.cutBytes = 0, 0
	}
}

// update takes an announcement from a reply. A reply without one is worth
// something only if the receiver itself has made it.
func (o *offer) update(h http.Header, genuine bool) {
	text := h.Get(HeaderBatch)
	if text == "" && !genuine {
		return
	}
	rows, bytes := parseOffer(text)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows, o.bytes = rows, bytes
}

// forget is called when a batch was not understood, whatever is announced:
// something between the two, or an older peer behind the same address.
func (o *offer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh()
	o.cutRows, o.cutAt = 1, time.Now()
}

// halve is called when a batch of so many bytes was too large (design: 9).
func (o *offer) halve(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh()
	half := max(bytes/2, 1)
	if o.cutBytes == 0 || half < o.cutBytes {
		o.cutBytes = half
	}
	o.cutAt = time.Now()
}
