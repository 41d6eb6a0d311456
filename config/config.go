package config

import (
	"time"
)

// Unlimited as Retry.Retries means that only a TTL ends the retries. The
// file says 0.
const Unlimited = -1

// Config is all that a node is told at its start. Default fills it, Check
// finds its faults. Paths that Load returns are absolute.
type Config struct {
	Node         Node
	Role         Role
	Listen       string        // host:port, port 0: any free one; or unix:///path/of/socket
	Data         string        // folder of the database and its lock; Load leaves it empty beside Store
	Store        Database      // instead of a file in Data; zero: none
	Lease        time.Duration // with Store: how long a silent node counts as alive
	Tokens       Tokens        // who needs one
	TLS          TLS
	Log          Log
	Durability   Durability
	Limits       Limits
	Retention    Retention
	Stop         time.Duration // grace for work in hand (SF-10), with Drain in it
	Drain        time.Duration // of a stop: how long requests are still served while readyz says no
	ClockHold    time.Duration // for so long is held what ends by time that only the clock knows of
	Poll         time.Duration // the longest time between two looks for due messages (SF-06)
	Backup       Backup
	Destinations map[string]Destination
	Receive      Receive

	// What is given up, each by itself. Everybody on the way can read and change
	// what goes to a listener that other machines reach, tokens as well, and to a
	// database on another machine.
	ListenUnencrypted bool
	StoreUnencrypted  bool

	Central       Central               // of a site
	Notifications Notifications         // of every other node
	Sites         map[string]SiteLimits // of central, by site or OtherSites
}
