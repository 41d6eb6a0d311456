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
	// HeaderBatch announces in every reply that the server takes batches: "max=512, bytes=4194304".
	// Unknown parts are skipped.
	HeaderBatch = "Rf-Batch"
	// HeaderBudget says how many milliseconds the sender still waits. After that time the receiver
	// begins nothing new.
	HeaderBudget = "Rf-Budget-Ms"
)

const (
	defaultBatchRows  = 512
	defaultBatchBytes = 4 << 20
	// unstatedBytes limits a batch if the peer announces only rows: common proxies let this
	// through.
	unstatedBytes = 1 << 20
	// cutFor is how long a limit learned from a 413 is kept.
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

// offer is what a client knows about how much its peer takes at once. It may be used concurrently.
type offer struct {
	mu          sync.Mutex
	rows, bytes int // announced; zero rows: no batches are announced, send one by one
	// Limits learned from a 413, or from a peer that did not understand a batch. They are kept for
	// cutFor. A proxy limits bytes, and does not announce its limit.
	cutRows, cutBytes int // zero: no limit
	cutAt             time.Time
}

// limits returns how many messages and bytes one batch may have. The caller wants at most most
// messages. One message means no batch.
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

// update takes an announcement from a reply. A reply without one counts only if it comes from the
// receiver itself.
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

// forget is called when a batch was not understood although batches are announced. The cause is
// something between the two, or an older peer behind the same address.
func (o *offer) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refresh()
	o.cutRows, o.cutAt = 1, time.Now()
}

// halve is called when a batch of the given size was too large (design: 9).
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
