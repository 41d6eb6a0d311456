// Package holdfasttest helps programs test their own senders and handlers. It has an outbox and an
// inbox in a temporary file, and queries about waiting messages that fail the test if the answer is
// wrong.
//
//	kit := holdfasttest.New(t)
//	approve(t.Context(), kit.DB, 42) // code of yours that sends
//	got := holdfasttest.Payloads[OrderApproved](kit, "inventory")
//
// It is the real store on a real file, so that a passing test shows what happens in production. It
// works inside testing/synctest, where time-outs and days of retries take no time. A failure lists
// the messages in the store.
//
// A Kit belongs to one test. Only the test's own goroutine may call its methods, since they call
// FailNow.
package holdfasttest
