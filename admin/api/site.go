package api

import "time"

// NewSite is what POST /v1/sites takes.
type NewSite struct {
	Name string `json:"name" minLength:"1" maxLength:"64" doc:"The site's name: the source of its messages." example:"plant-7"`
}

// SiteToken is a token with which a site enrolls. It is shown only once.
type SiteToken struct {
	Name    string    `json:"name"`
	Token   string    `json:"token" doc:"Give it to holdfast enroll at the site. Central keeps only a hash of it, and accepts it once."`
	Expires time.Time `json:"expires" doc:"When it stops being valid."`
}

// Site is a site as its central knows it.
type Site struct {
	Name       string     `json:"name"`
	State      string     `json:"state" enum:"online,offline,never,revoked" doc:"online: it was heard in the last 180 s. offline: it was not. never: it has not been seen since it was added. revoked: it is shut out."`
	Connected  bool       `json:"connected" doc:"It polls at this node, and can be asked from here."`
	LastSeen   *time.Time `json:"lastSeen,omitempty" doc:"Absent: never."`
	SilentMs   int64      `json:"silentMs,omitempty" doc:"How long ago it was last heard."`
	Version    string     `json:"version,omitempty" doc:"Of the program at the site."`
	Pending    int64      `json:"pending" doc:"Messages that wait there, over all destinations, as of the site's last report."`
	Parked     int64      `json:"parked" doc:"Messages that wait there for a decision."`
	OldestMs   int64      `json:"oldestMs,omitempty" doc:"How long the oldest has been due there."`
	Status     string     `json:"status,omitempty" doc:"Its own judgement: ok, degraded or failing."`
	ReportMs   *int64     `json:"reportMs,omitempty" doc:"How old its last report is; absent: there is none."`
	Nodes      []SiteNode `json:"nodes,omitempty" doc:"The last report of each of its nodes, the newest first; not in lists."`
	Created    time.Time  `json:"created"`
	Enrolled   *time.Time `json:"enrolled,omitempty" doc:"When central learned its present credential."`
	TokenUntil *time.Time `json:"tokenUntil,omitempty" doc:"Until when its unused token can be used; absent: it has none."`
	Revoked    *time.Time `json:"revoked,omitempty"`
}

// SiteNode is the last report of a node of a site.
type SiteNode struct {
	Node       string         `json:"node"`
	ReportMs   int64          `json:"reportMs" doc:"How old the report is."`
	Version    string         `json:"version,omitempty"`
	Role       string         `json:"role,omitempty"`
	Status     string         `json:"status,omitempty" doc:"Its own judgement: ok, degraded or failing."`
	Problems   []string       `json:"problems,omitempty" doc:"Its checks that are not ok."`
	Durability string         `json:"durability,omitempty"`
	Pending    int64          `json:"pending"`
	Parked     int64          `json:"parked"`
	OldestMs   int64          `json:"oldestMs,omitempty" doc:"How long the oldest message has been due."`
	LagMs      int64          `json:"lagMs,omitempty" doc:"How long the oldest message for central has been due."`
	StalledMs  int64          `json:"stalledMs,omitempty" doc:"How long messages for central have been due while none gets through."`
	Unsent     int64          `json:"unsent,omitempty" doc:"Records of its audit log that central lacks."`
	UnsentMs   int64          `json:"unsentMs,omitempty" doc:"How long the oldest of them has waited."`
	AuditFault string         `json:"auditProblem,omitempty" doc:"Why central did not take the last of them."`
	Replaying  bool           `json:"replaying,omitempty" doc:"It sends again what central has lost."`
	Categories []SiteCategory `json:"categories,omitempty"`
	Followers  []SiteFollower `json:"followers,omitempty" doc:"How far the followers of its journal are behind."`
	DiskFree   int64          `json:"diskFreeBytes,omitempty"`
	DiskFull   bool           `json:"diskFull,omitempty"`
	DoubtedMs  int64          `json:"doubtedMs,omitempty" doc:"Time that only its clock says has passed."`
	Held       int64          `json:"held,omitempty" doc:"Messages that are held because of that."`
}

// SiteCategory is what waits in one category at a site.
type SiteCategory struct {
	Category string `json:"category" doc:"Empty: destinations that are nodes."`
	Pending  int64  `json:"pending"`
	Parked   int64  `json:"parked"`
	OldestMs int64  `json:"oldestMs,omitempty"`
}

// SiteFollower is how far a follower of a site's journal is behind.
type SiteFollower struct {
	Name     string `json:"name"`
	BehindMs int64  `json:"behindMs"`
}

// SiteList holds all sites of a central, by name.
type SiteList struct {
	Sites []Site `json:"sites" nullable:"false"`
}
