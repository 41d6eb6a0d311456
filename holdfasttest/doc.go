// Package holdfasttest helps programs to test their own senders and handlers:
// an outbox and an inbox on a temporary file, and questions about what waits
// in them that fail the test where the answer is wrong.
//
//	kit := holdfasttest.New(t)
//	approve(t.Context(), kit.DB, 42) // code of yours that sends
//	got := holdfasttest.Payloads[OrderApproved](kit, "inventory")
//
// It is the real store on a real file, so that what passes here is what
// happens in production. It works inside testing/synctest, where time-outs and
// retries of days take no time. A failure lists the messages that were there.
//
// A Kit belongs to one test. Its methods may be called by that test's own
// goroutine only, since they end it with FailNow.
package holdfasttest
