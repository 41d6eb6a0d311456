package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// lateAttempt: a dispatcher has ended while an attempt was still running. The next dispatcher on
// the same open store does not get the message, and the outcome is recorded when it comes.
func lateAttempt(k *kit) {
	k.put(holdfast.Message{ID: "m"})
	var calls atomic.Int64
	began, release := make(chan struct{}), make(chan struct{})
	to := holdfast.DelivererFunc(func(context.Context, holdfast.Message) (holdfast.Receipt, error) {
		if calls.Add(1) == 1 {
			close(began)
		}
		<-release
		return holdfast.Receipt{}, nil
	})
	run := func() (stop func() error) {
		ctx, cancel := context.WithCancel(k.ctx())
		ended := make(chan error, 1)
		d := &holdfast.Dispatcher{
			Store: k.Full, Routes: map[string]holdfast.Route{"a": {Deliverer: to, Last: time.Millisecond}},
			Poll: 5 * time.Millisecond, Grace: time.Millisecond,
		}
		go func() { ended <- d.Run(ctx) }()
		return func() error {
			cancel()
			return <-ended
		}
	}
	stop := run()
	<-began
	if err := stop(); err == nil {
		k.t.Error("the stop did not say that an attempt did not return")
	}
	stop = run()
	k.put(holdfast.Message{ID: "b", Destination: "b"}) // a wake-up
	time.Sleep(100 * time.Millisecond)                 // only waiting shows that nothing happens
	k.is("m", holdfast.Claimed)
	close(release)
	waittest.Until(k.t, "it is delivered", func() bool { return k.get("m").State == holdfast.Delivered })
	if n := calls.Load(); n != 1 {
		k.t.Errorf("sent %d times, want once", n)
	}
	if err := stop(); err != nil {
		k.t.Error(err)
	}
}
