// Package notify notifies people. A notification names a list. Only central knows the recipients of
// the list and their channels, and looks them up at delivery (NO-06).
//
// It promises that a notification that Ingest has taken is on disk together with its messages: one
// for each channel of its list, in the channel's lane. Each message ends delivered or parked, with
// the outcome of each recipient (NO-01, NO-20). A recipient who has accepted is not asked again.
//
// It does not promise that a mail arrives only once: if its answer was lost it may come twice, with
// the same Message-ID.
//
// Store and DirectoryStore are the parts of a database that it needs: packages sqlite and postgres
// implement Store, package nodestore implements DirectoryStore. Adapter is the last hop; the packages
// below adapter implement it.
package notify
