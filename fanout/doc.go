// Package fanout turns one event into one message for each subscription that asks for it (WH-01).
//
// It promises that an event is stored together with all its messages before its publisher has an
// answer, and before anybody is called (WH-06); that the id of an event is its idempotency key
// within its source; and that each event is wholly with or wholly without a change of a subscription:
// it names the version of the subscriptions among which it was matched. An event that nobody asked
// for is stored too, so that it can be explained.
//
// It does not promise an order between the messages of a subscription, nor that a subscriber gets a
// message only once.
//
// Topics and subscriptions are in a [Store]. A [Book] holds them in memory, a [Publisher] takes
// events, and [Routes] gives a dispatcher a route for each subscription.
package fanout
