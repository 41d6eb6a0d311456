package config

// SiteLimits bound what a site may send to central. The zero value bounds
// nothing.
type SiteLimits struct {
	Lists []string // that its notifications may name; none: any
	Rate  int      // messages in a second, ten times as many at once; 0: any
	Daily int64    // bytes of payloads in a day of UTC; 0: any
}

// OtherSites is under which name the limits stand of the sites that have none
// of their own.
const OtherSites = "others"

func (r *report) checkSites(c *Config) {
	if len(c.Sites) > 0 && c.Role != CentralOfSites {
		r.fault("sites", "", problem{"is for a node of role central, and this one is " + string(c.Role), "remove it, or write role: central"})
	}
}

// siteKeys are what a site may send to central.
func siteKeys() section[SiteLimits] {
	return section[SiteLimits]{
		list("lists", func(s *SiteLimits) *[]string { return &s.Lists }, "operators", func(r *report, path, list string) {
			if list == "" {
				r.fault(path, "", problem{"is empty", "name a list, or remove lists for any"})
			}
		}, "The lists that its notifications may name. One for another list is refused for good, and parks at the site.").tells("names of lists", "any"),
		key("rate", func(s *SiteLimits) *int { return &s.Rate }, count(1, 1_000_000, "any", "50"), 0,
			"Notifications in a second; ten times as many may come at once. What is above waits at the site, and is told to."),
		key("daily", func(s *SiteLimits) *int64 { return &s.Daily }, size(mebibyte, 1<<50, "any"), 0,
			"Bytes of notifications in a day of UTC. What is above waits at the site for the next day. Only what is taken, and was not known, counts. Each central node counts for itself, from its start."),
	}
}
