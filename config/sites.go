package config

import "github.com/holdfast-mq/holdfast/internal/setting"

// SiteLimits bound what a site may send to central. The zero value sets no limits.
type SiteLimits struct {
	Lists []string // lists that its notifications may name; none: any
	Rate  int      // messages per second, with bursts of ten times as many; 0: unlimited
	Daily int64    // bytes of payloads per UTC day; 0: unlimited
}

// OtherSites is the name under which the limits of all other sites stand.
const OtherSites = "others"

func checkSites(r *setting.Report, c *Config) {
	if len(c.Sites) > 0 && c.Role != CentralOfSites {
		r.Fault("sites", "", setting.Problem{What: "is for a node of role central, but this one is " + string(c.Role), Fix: "remove it, or write role: central"})
	}
}

// siteKeys returns the keys of a site's limits.
func siteKeys() setting.Section[SiteLimits] {
	return setting.Section[SiteLimits]{
		setting.List("lists", func(s *SiteLimits) *[]string { return &s.Lists }, "operators", func(r *setting.Report, path, list string) {
			if list == "" {
				r.Fault(path, "", setting.Problem{What: "is empty", Fix: "name a list, or remove lists for any"})
			}
		}, "The lists that its notifications may name. A notification for another list is refused for good, and parks at the site.").Tells("names of lists", "any"),
		setting.Key("rate", func(s *SiteLimits) *int { return &s.Rate }, setting.Count(1, 1_000_000, "any", "50"), 0,
			"Notifications per second; ten times as many may come at once. Central tells the site to keep the others waiting."),
		setting.Key("daily", func(s *SiteLimits) *int64 { return &s.Daily }, setting.Size(setting.Mebibyte, 1<<50, "any"), 0,
			"Bytes of notifications per UTC day. The rest waits at the site for the next day. Only new notifications that central takes count. Each central node counts for itself, from its start."),
	}
}
