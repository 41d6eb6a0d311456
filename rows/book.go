package rows

import "github.com/holdfast-mq/holdfast/internal/belief"

// list returns an empty row of each table, in order: what people have set comes before accepted
// messages.
func list() []Row {
	return []Row{
		(*Settings)(nil), (*Lane)(nil), (*Token)(nil), (*Person)(nil), (*Session)(nil), (*Site)(nil), (*Channel)(nil), (*List)(nil), (*Recipient)(nil), (*AuditHold)(nil), (*Topic)(nil), (*Subscription)(nil), (*Schedule)(nil), (*Failing)(nil),
		(*Bundle)(nil), (*Message)(nil), (*Entry)(nil), (*Incoming)(nil), (*Notification)(nil), (*Target)(nil), (*Operation)(nil), (*SiteHealth)(nil), (*Activity)(nil), (*Event)(nil), (*Delivery)(nil),
		(*AuditLog)(nil), (*AuditRecord)(nil), (*AuditValue)(nil), (*AuditTile)(nil), (*AuditCheckpoint)(nil), (*AuditGap)(nil), (*AuditErasure)(nil), (*SiteCall)(nil), (*Bulk)(nil), (*BulkRow)(nil), (*Minute)(nil),
	}
}

// Settings is what a store keeps about itself, in one row.
type Settings struct {
	One     int64         `row:"one,key,split"`
	Notices int64         `row:"notices"` // bits: callbacks for parked messages, for expired ones
	Book    int64         `row:"book"`    // version of channels and lists
	Leaps   []belief.Leap `row:"-"`       // of the store's clock; messages that expired because of them would otherwise expire in the copy
}

// Lane is the settings of a destination.
type Lane struct {
	Destination string  `row:"destination,key,book,exact"`
	Strict      bool    `row:"strict"`
	Fault       string  `row:"fault,null"`
	FaultSince  Instant `row:"fault_since,null"`
	Paused      bool    `row:"paused"` // by a person
	Decided     Instant `row:"decided,null"`
	DecidedBy   string  `row:"decided_by,null"`
}

// Token is an access token of the API.
type Token struct {
	Name    string  `row:"name,key,book"`
	Role    string  `row:"role"` // or rights and scope, as the API writes them
	Hash    []byte  `row:"hash,secret"`
	Created Instant `row:"created"`
	Used    Instant `row:"used,null"`
	Until   Instant `row:"until,null"`
}

// Site is a site of a central node. Absent hashes are nil.
type Site struct {
	Name        string  `row:"name,key,book"`
	Created     Instant `row:"created"`
	Token       []byte  `row:"token,null,secret"` // for enrolment
	TokenUntil  Instant `row:"token_until,null"`
	Credential  []byte  `row:"hash,null,secret"`
	Former      []byte  `row:"former,null,secret"`
	FormerUntil Instant `row:"former_until,null"`
	Enrolled    Instant `row:"enrolled,null"`
	Seen        Instant `row:"seen,null"`
	Version     string  `row:"version,null"` // of the site's program
	Revoked     Instant `row:"revoked,null"`
}

// SiteHealth is the last report of a node of a site.
type SiteHealth struct {
	Site   string  `row:"site,key"`
	Node   string  `row:"node,key"`
	At     Instant `row:"at"`
	Report string  `row:"report"` // JSON
}

// Channel is a channel of notifications.
type Channel struct {
	Name     string  `row:"name,key,book"`
	Kind     string  `row:"kind"`
	Settings []byte  `row:"settings,null"`
	Attempts int64   `row:"attempts"`
	Interval int64   `row:"interval"`   // microseconds
	Waits    string  `row:"waits,null"` // microseconds, as JSON
	Workers  int64   `row:"workers"`
	Disabled bool    `row:"disabled"`
	Changed  Instant `row:"changed,grows"`
}

// List is a list of recipients.
type List struct {
	Name        string  `row:"name,key,book"`
	Description string  `row:"description"`
	Partial     bool    `row:"partial"`
	Recipients  int64   `row:"recipients"` // how many: so that a salvage knows what is lost
	Changed     Instant `row:"changed,grows"`
}

// Recipient is one address of a list.
type Recipient struct {
	List     string `row:"list,key,book"`
	Place    int64  `row:"place,key"` // position in the list, from 0
	Channel  string `row:"channel"`
	Address  string `row:"address"`
	Name     string `row:"name"`
	Disabled bool   `row:"disabled"`
}

// Table implements Row.
func (*Settings) Table() string { return "hf_meta" }

// Table implements Row.
func (*Lane) Table() string { return "hf_lane" }

// Table implements Row.
func (*Token) Table() string { return "hf_token" }

// Table implements Row.
func (*Site) Table() string { return "hf_site" }

// Table implements Row.
func (*SiteHealth) Table() string { return "hf_site_health" }

// Table implements Row.
func (*Channel) Table() string { return "hf_channel" }

// Table implements Row.
func (*List) Table() string { return "hf_list" }

// Table implements Row.
func (*Recipient) Table() string { return "hf_recipient" }
