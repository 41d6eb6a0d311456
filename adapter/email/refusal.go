package email

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// refusal remembers credentials that the server refuses, so that they are not tried again and
// again: servers lock accounts for less. A resumed channel has a new Mailer, which remembers none.
type refusal struct {
	mu    sync.Mutex
	fault *holdfast.Failure // nil: none was refused
	of    [sha256.Size]byte // hash of the secret
	times int               // consecutive refusals
	until time.Time
}

// Wait after the first refusal. It doubles with each further one.
const (
	leastRefused = time.Minute
	mostRefused  = time.Hour
)

// note records a refusal of a secret.
func (r *refusal) note(secret string, f *holdfast.Failure, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := sha256.Sum256([]byte(secret))
	if of != r.of {
		r.times, r.until = 0, time.Time{}
	}
	if now.Before(r.until) {
		return // another connection tried it at the same time
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

// stands returns the refusal of a secret that must not be tried again yet, or nil.
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

// ours returns our long-term secret: the password, or the secret of the OAuth2 grant.
func (m *Mailer) ours() (string, error) {
	var use notify.SecretUse
	if use = m.settings.passwordUse(); m.tokens != nil {
		use = m.settings.grantUse()
	}
	return m.read(use)
}
