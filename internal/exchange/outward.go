package exchange

import (
	"errors"
	"net"

	"github.com/holdfast-mq/holdfast"
)

// outward is an error in the words that a stranger may read.
type outward struct {
	text string
	err  error
}

func (t *outward) Error() string { return t.text }
func (t *outward) Unwrap() error { return t.err }

// Outward words a failure without an answer by the host that was called. A stranger may read it, and learns
// nothing of our network: not the proxy, not the resolver, no address of ours (ADR 0050).
func Outward(f *holdfast.Failure, host string) *holdfast.Failure {
	text := ""
	if op, ok := errors.AsType[*net.OpError](f.Err); ok {
		for inner, more := op, true; more; inner, more = errors.AsType[*net.OpError](op.Err) {
			op = inner
		}
		text = op.Err.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](f.Err); ok { // its own text may quote the exchange with the resolver
		switch {
		case dns.IsNotFound:
			text = "there is no such name"
		case dns.IsTimeout:
			text = "the name was not looked up in time"
		default:
			text = "the name cannot be looked up"
		}
	}
	if text == "" {
		return f
	}
	worded := *f
	worded.Err = &outward{host + ": " + text, f.Err}
	return &worded
}
