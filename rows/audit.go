package rows

import "github.com/holdfast-mq/holdfast"

// AuditLog is one log of audit records: those of one node in one history of its store. Its records are
// in hf_audit.
type AuditLog struct {
	Log     int64   `row:"log,key"`      // number of the log in this store
	Origin  string  `row:"origin,exact"` // name of the log; see audit.Origin
	Own     bool    `row:"own,stays"`    // appended by this store; otherwise a copy of another node's log
	Opened  Instant `row:"opened,stays"`
	Size    int64   `row:"size"`                // number of its last record; records are numbered from 1
	Head    []byte  `row:"head"`                // chain hash of the last record; of a copy: as its node said
	Cut     int64   `row:"cut,stays"`           // records up to here were purged
	CutHash []byte  `row:"cut_hash,null,stays"` // chain hash of the last purged record
	Site    string  `row:"site,null,stays"`     // of a copy: whose credential it came with
}

// AuditRecord is one record of a log. It never changes. Leaf and Hash are the record; the other
// columns are taken from it, to search by.
type AuditRecord struct {
	Log      int64       `row:"log,key"`
	Seq      int64       `row:"seq,key"` // from 1, without gaps
	ID       holdfast.ID `row:"id"`      // of the event
	At       int64       `row:"at"`      // when it happened: microseconds since 1970 by the clock of whoever saw it
	Stored   Instant     `row:"stored"`  // here
	Channel  string      `row:"channel"`
	Kind     string      `row:"kind"`
	Status   string      `row:"status"`
	Failed   bool        `row:"failed"` // the status is an error
	Site     string      `row:"site"`
	Node     string      `row:"node"`
	Instance string      `row:"instance,null"`
	Actor    string      `row:"actor,null"`
	Target   string      `row:"target,null"` // empty if it is sealed: then it is in hf_audit_value
	Corr     string      `row:"corr,null"`
	Leaf     []byte      `row:"leaf"`       // see audit.Record.Leaf
	Hash     []byte      `row:"hash,fixed"` // see audit.ChainHash
}

// AuditValue is a personal value of a record. The record has only a commitment to it, so the value
// can be erased.
type AuditValue struct {
	Log   int64  `row:"log,key"`
	Seq   int64  `row:"seq,key"`
	Field string `row:"field,key"`
	At    int64  `row:"at"` // the record's, to search by
	Salt  []byte `row:"salt"`
	Value string `row:"value"`
}

// AuditTile is up to 256 hashes of one level of a log's Merkle tree.
type AuditTile struct {
	Log    int64  `row:"log,key"`
	Level  int64  `row:"level,key"` // 0 has hashes of records
	Number int64  `row:"number,key"`
	Hashes []byte `row:"hashes"` // 32 bytes each
}

// AuditCheckpoint is a signed statement of what a log contained at one size.
type AuditCheckpoint struct {
	Origin string  `row:"origin,key"` // of the log, of this store or of another
	Size   int64   `row:"size,key"`
	Root   []byte  `row:"root"`
	Note   string  `row:"note"` // signed: golang.org/x/mod/sumdb/note
	Seen   Instant `row:"seen"`
}

// AuditGap is a range of records that a copy of a log lacks.
type AuditGap struct {
	Log   int64  `row:"log,key"`
	First int64  `row:"first,key"`
	Last  int64  `row:"last"`
	Hash  []byte `row:"hash"` // of the chain at the last of them, by which the record that follows is known
}

// AuditHold keeps the records that it selects, and all later ones, from being purged.
type AuditHold struct {
	Name   string  `row:"name,key,book"`
	Filter string  `row:"filter"` // audit.Filter as JSON
	Reason string  `row:"reason"`
	Actor  string  `row:"actor"`
	Since  Instant `row:"since"`
}

// AuditErasure is a value that was erased here, of which the other end of the link has not confirmed yet that it is erased
// there.
type AuditErasure struct {
	Log    int64   `row:"log,key"`
	Seq    int64   `row:"seq,key"`
	Field  string  `row:"field,key"`
	Reason string  `row:"reason"`
	Since  Instant `row:"since"`
}

// Table implements Row.
func (*AuditErasure) Table() string { return "hf_audit_erasure" }

// Table implements Row.
func (*AuditLog) Table() string { return "hf_audit_log" }

// Table implements Row.
func (*AuditRecord) Table() string { return "hf_audit" }

// Table implements Row.
func (*AuditValue) Table() string { return "hf_audit_value" }

// Table implements Row.
func (*AuditTile) Table() string { return "hf_audit_tile" }

// Table implements Row.
func (*AuditCheckpoint) Table() string { return "hf_audit_checkpoint" }

// Table implements Row.
func (*AuditGap) Table() string { return "hf_audit_gap" }

// Table implements Row.
func (*AuditHold) Table() string { return "hf_audit_hold" }
