package config

import (
	"path/filepath"
	"time"
)

// Never as a TTL or a retention means that no time ends it, as Backup.Every
// that its time never comes. The file says "none" for a TTL, "forever" for a
// retention and "off" for backups.
const Never time.Duration = -1

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

// Node says who this node is to its peers.
type Node struct {
	ID     string // what it is called among the nodes of one store
	Source string // of the messages it sends; empty: ID
}

// Source is who the messages are from that this node sends.
func (c *Config) Source() string {
	if c.Node.Source != "" {
		return c.Node.Source
	}
	return c.Node.ID
}

// Tokens says who needs a token to ask the node.
type Tokens string

// Who needs one. Signed messages and sites prove themselves otherwise.
const (
	TokensRemote Tokens = "remote" // who comes from another machine
	TokensAlways Tokens = "always" // everybody, on the loopback and a socket as well
	TokensNever  Tokens = "never"  // nobody: who reaches the listener may do everything
)

// TLS names the certificate of the listener; both paths or neither. The files
// are read again when they change.
type TLS struct {
	Cert    string
	Key     string
	Clients string // path of the CAs of sites, which then must show a certificate; empty: they need none
	AnySite bool   // a certificate need not name the site that shows it
}

// Log says what is logged and how.
type Log struct {
	Level  LogLevel
	Format LogFormat
}

// LogLevel is the least important level that is written, in a form that
// slog.Level reads.
type LogLevel string

// The log levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Durability says when a commit counts.
type Durability string

// The levels of durability.
const (
	Full   Durability = "full"   // after it reached the disk
	Normal Durability = "normal" // may lose the last seconds at a power cut
)

// Limits bounds what the node accepts.
type Limits struct {
	Payload int64 // bytes of one message's payload
	Reserve int64 // bytes of the disk set aside to record outcomes when it is full; 0: none

	Connections int   // at one time; 0: half of the files that the process may have open
	Strangers   int64 // bytes of bodies in hand whose senders are not known yet
	Bodies      int64 // bytes of bodies in hand of those who may use the API
}

// Retention says how long final rows are kept. Their ids are refused or
// recognised as duplicates meanwhile.
type Retention struct {
	Delivered time.Duration
	Discarded time.Duration
	Expired   time.Duration
	Inbox     time.Duration // how long a repeat of a received message is recognised
	Parked    time.Duration // Never: until a person decides
	Sweep     time.Duration // between two looks for rows to purge
}

// Backup says how often the database is copied, and how many copies stay
// (OI-14). The newest copy always stays.
type Backup struct {
	Folder string        // empty: BackupFolder says
	Every  time.Duration // Never: no copies are made
	Hourly int           // so many hours keep their last copy
	Daily  int           // so many days keep their last copy
}

// BackupFolder is where copies go: unless it was named, in the data folder.
func (c *Config) BackupFolder() string {
	if c.Backup.Folder != "" {
		return c.Backup.Folder
	}
	return filepath.Join(c.Data, "backups")
}

// Receive says what comes in and from whom.
type Receive struct {
	Window    time.Duration       // the longest that a sender may retry one message
	Sources   map[string]Source   // by the node id of the sender; key "secrets" of the file
	Endpoints map[string]Endpoint // by name
}

// Source is a peer whose messages are taken: the form of its signature and
// the secrets that it may sign with, the newest first.
type Source struct {
	HMAC    HMAC
	Secrets []Secret
}

// Endpoint says what becomes of the messages for one endpoint: exactly one of
// Forward and Keep.
type Endpoint struct {
	Forward string        // URL of a local program
	Timeout time.Duration // of one call; zero with Keep
	Keep    bool          // the row waits in the inbox until it is marked done
}
