package config

import (
	"time"
)

// Unlimited in Retry.Retries means that only a TTL ends the retries. The file says 0.
const Unlimited = -1

// Config is everything that a node is told at its start. Default fills it, and Check finds its faults. Paths
// that Load returns are absolute.
type Config struct {
	Node         Node
	Role         Role
	Listen       string        // host:port, with port 0 for any free one; or unix:///path/of/socket
	Data         string        // folder of the database and its lock; with Store, Load leaves it empty
	Store        Database      // used instead of a file in Data; zero: not used
	Lease        time.Duration // with Store: how long a silent node counts as alive
	Tokens       Tokens        // who needs a token
	TLS          TLS
	Log          Log
	Durability   Durability
	Limits       Limits
	Retention    Retention
	Activity     bool          // what happens to messages is written into the activity log
	Stop         time.Duration // grace for work in hand (SF-10), including Drain
	Drain        time.Duration // at a stop: how long requests are still served while readyz says no
	ClockHold    time.Duration // how long to hold what ends by time that only the clock says has passed
	Poll         time.Duration // the longest time between two looks for due messages (SF-06)
	Backup       Backup
	Audit        Audit
	Pages        Pages
	Sessions     Sessions
	Destinations map[string]Destination
	Receive      Receive

	// Safeguards that are given up, each by itself. Everybody on the way can then read and change the
	// traffic, including tokens: to a listener that other machines reach, and to a database on another
	// machine.
	ListenUnencrypted bool
	StoreUnencrypted  bool

	Central       Central               // of a site
	Notifications Notifications         // of every node that is not a site
	Webhooks      Webhooks              // of every node that is not a site
	Notificaties  Notificaties          // of every node that is not a site
	Secrets       Keyring               // of every node that is not a site
	Sites         map[string]SiteLimits // of central, by site or OtherSites
}
