package api

import "time"

// AuditCheckpoint is a signed statement of what the node's audit log has.
type AuditCheckpoint struct {
	Log     string    `json:"log" doc:"The name of the log."`
	Records int64     `json:"records" doc:"How many it covers."`
	Time    time.Time `json:"time" doc:"When it was signed."`
	Key     string    `json:"key" doc:"The verifier key of who has signed it last."`
	Note    string    `json:"note" doc:"The signed note, as witnesses keep it: origin, size, root of the tree, hash of the last record, time, keys, signatures."`
}

// AuditRotation is what POST /v1/audit/rotate-key takes.
type AuditRotation struct {
	From   string `json:"from,omitempty" maxLength:"1024" doc:"The verifier key that is to hand over, as the last checkpoint names it. If it has handed over already, as when the answer to the same request was lost, the answer is that checkpoint. Left out: the key that signs."`
	Reason string `json:"reason" minLength:"1" maxLength:"1024" doc:"In one line. It is in the log for good." example:"yearly change"`
}

// AuditProof shows that a record is in the log, to whoever knows the verifier key. It has no personal values.
type AuditProof struct {
	Version    int             `json:"holdfast-audit-proof" doc:"1."`
	Leaf       []byte          `json:"leaf" doc:"The record as it is stored."`
	Index      int64           `json:"index" doc:"Of the leaf in the tree, from 0."`
	Size       int64           `json:"size" doc:"Records that the tree has."`
	Hashes     [][]byte        `json:"hashes" nullable:"false" doc:"They lead from the leaf to the root (RFC 6962)."`
	Checkpoint string          `json:"checkpoint" doc:"Of this size: a signed note."`
	HandOvers  []string        `json:"handOvers,omitempty" nullable:"false" doc:"The checkpoints by which keys handed over to the next, the oldest first."`
	Copy       *AuditCopyProof `json:"copy,omitempty" doc:"The record of a site, at central: then leaf is the record of the batch in which central took it."`
}

// AuditCopyProof leads from a site's record to the end of the batch in which central took it.
type AuditCopyProof struct {
	Log       string   `json:"log" doc:"The site's log."`
	Seq       int64    `json:"seq" doc:"Its number there."`
	Leaf      []byte   `json:"leaf" doc:"The record as it is stored."`
	Before    []byte   `json:"before" doc:"The chain hash before it."`
	Following [][]byte `json:"following,omitempty" nullable:"false" doc:"Hashes of the leaves that follow in the batch."`
}
