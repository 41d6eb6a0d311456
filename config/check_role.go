package config

import (
	"net/url"
	"time"

	"github.com/holdfast-mq/holdfast/internal/secrets"
)

// Bounds of a poll: below, it is nothing but load; above, what is due waits for
// longer than SF-06 allows.
const (
	leastPoll = 100 * time.Millisecond
	mostPoll  = 10 * time.Second
)

func (r *report) checkRole(c *Config) {
	r.checkCentral(c)
	r.checkSites(c)
	n := c.Notifications
	if c.Role == Site && (n.Secrets != "" || n.Seed != "" || len(n.Bindings) > 0) {
		r.fault("notifications", "", problem{"is central's, and this node is a site, which knows no channels", "remove it, or write another role"})
	}
	if len(n.Bindings) > 0 && n.Secrets == "" && !r.bad["notifications.secrets"] {
		r.fault("notifications.bindings", "", problem{"is about secrets of a folder, and none is named", "set notifications.secrets, or remove it"})
	}
	if _, ok := c.Destinations["central"]; ok && c.Role == Site {
		r.fault("destinations.central", "", problem{"has the name of the way to central, which a site has by itself", "use another name"})
	}
}

func (r *report) checkCentral(c *Config) {
	to := c.Central
	if c.Role != Site {
		if to.URL != "" || to.Credential != "" || to.CA != "" || to.Cert != "" || to.Key != "" || r.given("central.timeout") {
			r.fault("central", "", problem{"is for a node of role site, and this one is " + string(c.Role), "remove it, or write role: site"})
		}
		return
	}
	if !c.Store.IsZero() {
		r.fault("store", "", problem{"has no meaning for a site, which keeps its messages in a file of its own", "remove it, or write role: central"})
	}
	// What central may have lost is sent again out of these.
	if least := day; c.Retention.Delivered < least {
		r.fault("retention.delivered", FormatDuration(c.Retention.Delivered), problem{"is shorter than the " + FormatDuration(least) + " that a site keeps for a central that was restored", "write " + FormatDuration(least) + " or more"})
	}
	if to.URL == "" && !r.bad["central.url"] {
		r.fault("central.url", "", problem{"is not set, and a site forwards to it", "write central's address, such as https://central.example:8420"})
		return
	}
	r.checkURL("central.url", to.URL, false)
	if (to.Cert == "") != (to.Key == "") && !r.bad["central.cert"] && !r.bad["central.key"] {
		r.fault("central", "", problem{"has one of cert and key", "name both files, or neither"})
	}
	u, err := url.Parse(to.URL)
	switch {
	case err != nil || u.Scheme != "http":
	case to.CA != "" || to.Cert != "":
		r.fault("central.url", secrets.URL(to.URL), problem{"uses http, for which ca, cert and key have no meaning", "write https, or remove them"})
	case !isLoopback(u.Hostname()):
		r.fault("central.url", secrets.URL(to.URL), problem{"leaves this machine without TLS, and the site's credential would go with it", "write https"})
	}
}
