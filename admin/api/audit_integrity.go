package api

import "time"

// AuditIntegrity is what is known of whether the node's audit logs are what was written and signed.
type AuditIntegrity struct {
	Verified  *time.Time       // when the last verification ended; nil: none has, since the start
	Verifying bool             // one is under way or asked for
	Verdict   string           // intact, unanchored or broken; empty: none yet
	Logs      []AuditLogStatus // that the last verification has read, the node's own first
	Problem   string           // why the log could not be signed when that was tried last; empty: it was
	Signed    *AuditCheckpoint // the newest checkpoint of the node's own log; nil: there is none
}

// AuditLogStatus is what the last verification found in one log.
type AuditLogStatus struct {
	Log       string
	Own       bool
	Verdict   string
	First     int64      // the first record that is kept
	Records   int64      // the number of the last record
	Anchored  int64      // records that signed checkpoints cover
	Witnessed int64      // records that checkpoints cover that somebody else keeps
	Witness   *time.Time // when the last of these was signed
	Fault     string     // empty: none
	Record    int64      // the first one at fault
	Detail    string
}
