package email

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// refusal remembers credentials that the server does not take, so that they are
// not shown to it again and again: accounts are locked for less. A channel that
// is resumed has a new Mailer, which remembers none.
type refusal struct {
	mu    sync.Mutex
	fault *holdfast.Failure // nil: none
	of    [sha256.Size]byte // the secret
	times int               // in a row
	until time.Time
}

// The wait after the first refusal; it doubles.
const (
	leastRefused = time.Minute
	mostRefused  = time.Hour
)

// note is called with each refusal of a secret.
func (r *refusal) note(secret string, f *holdfast.Failure, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := sha256.Sum256([]byte(secret))
	if of != r.of {
		r.times, r.until = 0, time.Time{}
	}
	if now.Before(r.until) {
		return // others tried at the same time
	}
	r.fault, r.of = f, of
	r.until = now.Add(min(leastRefused<<min(r.times, 10), mostRefused))
	r.times++
}

func (r *refusal) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault, r.times, r.until = nil, 0, time.Time{}
}

// stands is the refusal of a secret that is not to be tried again yet.
func (r *refusal) stands(secret func() (string, error), now time.Time) *holdfast.Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault == nil || !now.Before(r.until) {
		return nil
	}
	if s, err := secret(); err != nil || sha256.Sum256([]byte(s)) != r.of {
		return nil
	}
	f := *r.fault
	f.Err = fmt.Errorf("%w (not tried again before %s, unless the secret changes or the channel is resumed)", r.fault.Err, r.until.UTC().Format("15:04 UTC"))
	return &f
}

// ours reads the secret by which we get in; with a grant, that of the grant.
func (m *Mailer) ours() (string, error) {
	var use notify.SecretUse
	if use = m.settings.passwordUse(); m.tokens != nil {
		use = m.settings.grantUse()
	}
	return m.read(use)
}
