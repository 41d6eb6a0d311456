package api

// AuditBySite is the answer to a question for numbers of the audit log by site.
type AuditBySite struct {
	Window string          `json:"window" doc:"The time that records and errors were counted for."`
	Sites  []SiteAuditKPIs `json:"sites" nullable:"false"`
}

// SiteAuditKPIs are numbers of one site's audit log.
type SiteAuditKPIs struct {
	Site          string  `json:"site"`
	Records       int64   `json:"records" doc:"Records of the window that are kept here; 100000 says: or more."`
	Errors        int64   `json:"errors" doc:"Of these, with a status that is an error."`
	ErrorRate     float64 `json:"errorRate" doc:"Errors for each record, 0 to 1."`
	Unsent        int64   `json:"unsent" doc:"Records that the site has and central lacks, as its nodes last said."`
	UnsentSeconds float64 `json:"unsentSeconds" doc:"How long the oldest of them has waited."`
	Problem       string  `json:"problem,omitempty" doc:"Why central did not take the last of them."`
}
