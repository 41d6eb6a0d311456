package config

import (
	"net/url"

	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

func checkRole(r *setting.Report, c *Config) {
	checkCentral(r, c)
	checkSites(r, c)
	n := c.Notifications
	if c.Role == Site && (n.Secrets != "" || n.Seed != "" || len(n.Bindings) > 0) {
		r.Fault("notifications", "", setting.Problem{What: "is for central, but this node is a site, which has no channels", Fix: "remove it, or write another role"})
	}
	if len(n.Bindings) > 0 && n.Secrets == "" && !r.Bad["notifications.secrets"] {
		r.Fault("notifications.bindings", "", setting.Problem{What: "needs a folder of secrets, but none is named", Fix: "set notifications.secrets, or remove it"})
	}
	if c.Role == Site && (!c.Secrets.Key.IsZero() || len(c.Secrets.Former) > 0) {
		r.Fault("secrets", "", setting.Problem{What: "is for central, but this node is a site, which keeps no secrets of others", Fix: "remove it, or write another role"})
	}
	if _, ok := c.Destinations["central"]; ok && c.Role == Site {
		r.Fault("destinations.central", "", setting.Problem{What: "has the name that a site itself uses for the way to central", Fix: "use another name"})
	}
}

func checkCentral(r *setting.Report, c *Config) {
	to := c.Central
	if c.Role != Site {
		if to.URL != "" || to.Credential != "" || to.CA != "" || to.Cert != "" || to.Key != "" || r.Given("central.timeout") {
			r.Fault("central", "", setting.Problem{What: "is for a node of role site, but this one is " + string(c.Role), Fix: "remove it, or write role: site"})
		}
		return
	}
	if !c.Store.IsZero() {
		r.Fault("store", "", setting.Problem{What: "has no meaning for a site, which keeps its messages in a file of its own", Fix: "remove it, or write role: central"})
	}
	// A site sends again from these what central may have lost.
	if least := setting.Day; c.Retention.Delivered < least {
		r.Fault("retention.delivered", setting.FormatDuration(c.Retention.Delivered), setting.Problem{What: "is shorter than the " + setting.FormatDuration(least) + " that a site keeps for a central that was restored", Fix: "write " + setting.FormatDuration(least) + " or more"})
	}
	if to.URL == "" && !r.Bad["central.url"] {
		r.Fault("central.url", "", setting.Problem{What: "is not set, but a site forwards to it", Fix: "write central's address, such as https://central.example:8420"})
		return
	}
	r.CheckURL("central.url", to.URL, false)
	if (to.Cert == "") != (to.Key == "") && !r.Bad["central.cert"] && !r.Bad["central.key"] {
		r.Fault("central", "", setting.Problem{What: "has one of cert and key", Fix: "name both files, or neither"})
	}
	u, err := url.Parse(to.URL)
	switch {
	case err != nil || u.Scheme != "http":
	case to.CA != "" || to.Cert != "":
		r.Fault("central.url", secrets.URL(to.URL), setting.Problem{What: "uses http, for which ca, cert and key have no meaning", Fix: "write https, or remove them"})
	case !setting.IsLoopback(u.Hostname()):
		r.Fault("central.url", secrets.URL(to.URL), setting.Problem{What: "leaves this machine without TLS, and would show the site's credential on the way", Fix: "write https"})
	}
}
