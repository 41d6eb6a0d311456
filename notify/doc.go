// Package notify brings notifications to people. A notification names a list;
// who is on the list, and over which channels they are reached, is known at
// central only and looked up when it is delivered (NO-06).
//
// What it promises: a notification that Ingest has taken is on disk together
// with the messages that deliver it, one for each channel of its list, each in
// the lane of its channel; they end delivered or parked, with what became of
// each recipient (NO-01, NO-20). A recipient who has accepted is not asked
// again. What it does not: a mail whose answer was lost may come twice, with the
// same Message-ID.
//
// Store is what it needs of a database; packages sqlite and postgres have it. BookStore is where channels and lists are: package nodestore.
// Adapter is the last hop; the folders below adapter have those.
package notify
