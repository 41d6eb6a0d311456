package transporttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/holdfast-mq/holdfast"
)

// Fault is what happens to one delivery on its way.
type Fault uint8

// The faults. In each but Double the sender learns what a real one would: no answer came, so the
// message may have been delivered.
const (
	NoFault     Fault = iota
	LoseRequest       // the request never arrives
	LoseAck           // the request arrives, the answer does not
	Double            // the request arrives twice; the second answer counts
	Late              // the request arrives after the sender has given up, behind the next one
	Cut               // half of a batch arrives and is answered; for a single message like LoseAck
	faultCount
)

// Plan returns the fault of call n, counted from 0.
type Plan func(n int) Fault

// Script returns a plan with the given faults, once each in order. Later calls meet none.
func Script(faults ...Fault) Plan {
	return func(n int) Fault {
		if n < len(faults) {
			return faults[n]
		}
		return NoFault
	}
}

// Seeded returns a plan in which the given share of calls, from 0 to 1, meets a fault. The same
// seed gives the same plan.
func Seeded(seed uint64, share float64) Plan {
	return func(n int) Fault {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		if r.Float64() >= share {
			return NoFault
		}
		return Fault(1 + r.IntN(int(faultCount)-1))
	}
}

// Faulty stands in front of any Deliverer and does to its messages what networks do. It may be used
// concurrently; calls then take their faults in the order in which they arrive.
type Faulty struct {
	To   holdfast.Deliverer
	Plan Plan

	mu    sync.Mutex
	calls int
	late  []holdfast.Message
}

var _ holdfast.BatchDeliverer = (*Faulty)(nil)

// errLost is what a sender sees when the answer is lost.
var errLost = errors.New("faulty: no answer came")

func lost() error {
	return &holdfast.Failure{Code: "timeout", MaybeDelivered: true, Err: errLost}
}

// next returns the fault of this call and the messages that are late.
func (f *Faulty) next() (Fault, []holdfast.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.late
	f.late = nil
	f.calls++
	return f.Plan(f.calls - 1), late
}

func (f *Faulty) keep(ms ...holdfast.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = append(f.late, ms...)
}

// Flush delivers the messages that are late.
func (f *Faulty) Flush(ctx context.Context) {
	f.mu.Lock()
	late := f.late
	f.late = nil
	f.mu.Unlock()
	for _, m := range late {
		f.To.Deliver(ctx, m) //nolint:errcheck // nobody waits for the answer any more
	}
}

// Deliver delivers m, or not.
func (f *Faulty) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	fault, late := f.next()
	defer func() {
		for _, l := range late {
			f.To.Deliver(ctx, l) //nolint:errcheck // nobody waits for the answer any more
		}
	}()
	switch fault {
	case LoseRequest:
		return holdfast.Receipt{ID: m.ID}, lost()
	case Late:
		f.keep(m)
		return holdfast.Receipt{ID: m.ID}, lost()
	case LoseAck, Cut:
		f.To.Deliver(ctx, m) //nolint:errcheck // the answer is lost
		return holdfast.Receipt{ID: m.ID}, lost()
	case Double:
		f.To.Deliver(ctx, m) //nolint:errcheck // the second answer counts
	case NoFault, faultCount:
	}
	return f.To.Deliver(ctx, m)
}

// BatchSize returns the batch size of the Deliverer behind it.
func (f *Faulty) BatchSize() int {
	if b, ok := f.To.(holdfast.BatchDeliverer); ok {
		return b.BatchSize()
	}
	return 1
}

// DeliverBatch delivers ms, or a part of them, as one call of the plan.
func (f *Faulty) DeliverBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	fault, late := f.next()
	defer func() {
		for _, l := range late {
			f.To.Deliver(ctx, l) //nolint:errcheck // nobody waits for the answer any more
		}
	}()
	nothing := func(from int, results []holdfast.Result) []holdfast.Result {
		for _, m := range ms[from:] {
			results = append(results, holdfast.Result{Receipt: holdfast.Receipt{ID: m.ID}, Err: lost()})
		}
		return results
	}
	switch fault {
	case LoseRequest:
		return nothing(0, nil)
	case Late:
		f.keep(ms...)
		return nothing(0, nil)
	case LoseAck:
		f.batch(ctx, ms)
		return nothing(0, nil)
	case Cut:
		half := len(ms) / 2
		return nothing(half, f.batch(ctx, ms[:half]))
	case Double:
		f.batch(ctx, ms)
	case NoFault, faultCount:
	}
	return f.batch(ctx, ms)
}

func (f *Faulty) batch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	if b, ok := f.To.(holdfast.BatchDeliverer); ok && len(ms) > 0 {
		return b.DeliverBatch(ctx, ms)
	}
	results := make([]holdfast.Result, len(ms))
	for i, m := range ms {
		results[i].Receipt, results[i].Err = f.To.Deliver(ctx, m)
	}
	return results
}
