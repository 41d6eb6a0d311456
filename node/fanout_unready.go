package node

import (
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// unreadyRest is how long the messages of a subscription wait until it is looked at again.
const unreadyRest = time.Minute

// unready are the subscriptions that nobody can be called for, by this node's fault. The zero value is ready.
type unready struct{ why sync.Map } // a text by id

// wait notes why a subscription is not ready. Its messages wait, and keep their schedules: it is not their
// subscriber who is away.
func (u *unready) wait(s *fanout.Subscription, err error) *holdfast.Failure {
	u.why.Store(s.ID, err.Error())
	return &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "no_target", RetryAfter: unreadyRest, Err: err}
}

// over says that a subscription is ready, or is no more.
func (u *unready) over(id string) { u.why.Delete(id) }

// of returns why a subscription is not ready; empty: it is, as far as is known.
func (u *unready) of(id string) string {
	why, _ := u.why.Load(id)
	text, _ := why.(string)
	return text
}
