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
	State      string     `json:"state" enum:"connected,away,waiting,revoked" doc:"connected: it polls at this node. away: it does not. waiting: it has not enrolled yet. revoked: it is shut out."`
	LastSeen   *time.Time `json:"lastSeen,omitempty" doc:"Absent: never."`
	Version    string     `json:"version,omitempty" doc:"Of the program at the site."`
	Pending    int64      `json:"pending" doc:"Messages that wait there, over all destinations, as of the site's last report; only for a connected site."`
	Parked     int64      `json:"parked" doc:"Messages that wait there for a decision."`
	OldestMs   int64      `json:"oldestMs,omitempty" doc:"How long the oldest has been due there."`
	Created    time.Time  `json:"created"`
	Enrolled   *time.Time `json:"enrolled,omitempty" doc:"When central learned its present credential."`
	TokenUntil *time.Time `json:"tokenUntil,omitempty" doc:"Until when its unused token can be used; absent: it has none."`
	Revoked    *time.Time `json:"revoked,omitempty"`
}

// SiteList holds all sites of a central, by name.
type SiteList struct {
	Sites []Site `json:"sites" nullable:"false"`
}
