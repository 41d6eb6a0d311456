// Package webhook delivers a message to a subscriber: a signed HTTP POST, one request for each
// attempt (WH-02).
//
// It promises that the bytes that were signed are those that are sent, and that the payload goes
// out as it is stored. webhook-id is the same in each attempt; webhook-timestamp is that of the
// attempt. One deadline limits the whole exchange, with the answer's body. The status alone decides:
// 2xx is a success whatever its body is, and everything else is tried again, but 410. Redirects are
// not followed. At most 16 KiB of an answer are kept. A connection leads only to addresses that are
// allowed. No secret appears in an error, even if the subscriber repeats it.
//
// It does not promise that a subscriber gets a message only once: if an answer was lost, the message
// comes again, with the same webhook-id.
package webhook
