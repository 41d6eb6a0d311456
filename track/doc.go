// Package track says what became of operations: calls of foreign systems and writes to foreign databases.
//
// An operation is a message under another name. While the message is kept, it alone says how the operation
// stands, so the two cannot differ. When the message is purged before the time of tracking is over
// (holdfast.Retention), the same transaction writes a record of what became of it. Nothing is written before.
//
// A Tracker answers from the store of its own node, also while all others are away. It waits for no write.
package track
