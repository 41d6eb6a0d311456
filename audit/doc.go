// Package audit keeps a provable record of what has happened on a node: messages that went out and
// came in, notifications, what people and programs asked of the API, and what the node itself did.
//
// A Record is one event. A log is the records of one node in one history of its store, numbered from
// 1 without gaps. Each record is stored as its leaf: bytes that are made once and never again. Two
// structures cover the leaves:
//
//   - A chain. The chain hash of a record covers its number, the chain hash before it, and the hash of
//     its leaf. So no record can be changed, inserted or removed without changing all that follow.
//   - A Merkle tree (RFC 6962, golang.org/x/mod/sumdb/tlog). Its root is signed as a checkpoint
//     (golang.org/x/mod/sumdb/note), with a key that is not in the database. Checkpoints are given to
//     witnesses: other nodes, a file, a URL. So a log whose end was cut off, or that was replaced as a
//     whole, no longer matches what a witness has.
//
// Personal values, such as the address of a recipient, stand in a record as salted commitments. The
// value stands beside it and can be erased, while the log stays intact.
package audit
