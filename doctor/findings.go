package doctor

import (
	"io/fs"
	"time"

	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport"
)

// Findings are the measured facts.
type Findings struct {
	Now     time.Time
	Config  ConfigFound
	Data    string       // folder; empty: unknown
	Server  *ServerFound // instead of a folder; nil: no server
	Folder  FolderFound
	Files   []FileFound // files whose permissions matter
	Owner   OwnerFound
	File    FileContent
	Damaged []sqlite.Damage // files that were set aside, and what was salvaged from them
	Disk    DiskFound
	Sync    SyncFound
	Listen  ListenFound
	Running RunningFound
	Cert    *CertFound // of this node's listener; nil: no certificate
	Peers   []PeerFound
	Local   []LocalFound
	Central *CentralFound // nil: this node is not a site
	Backups BackupsFound
	Program Program
}

// ServerFound is a PostgreSQL database.
type ServerFound struct {
	postgres.Inspection
	Address string // without its password
	SSLMode string
	Remote  bool
	Err     error // why it could not be asked
}

// Program tells what this binary was built from.
type Program struct{ Version, Commit, Go, Platform string }

// ConfigFound is the result of reading the configuration.
type ConfigFound struct {
	File     string
	Config   *config.Config // nil: it has faults
	Faults   []string
	Warnings []string
}

// FolderFound is the data folder.
type FolderFound struct {
	Exists bool
	IsDir  bool
	Mode   fs.FileMode
	Shut   bool  // a folder above keeps everybody else out
	Err    error // why it cannot be examined
	Write  error // why no file can be made in it
}

// FileFound is a file whose permissions matter.
type FileFound struct {
	What string
	Path string
	Mode fs.FileMode
	Shut bool // a folder above keeps everybody else out
	Err  error
}

// OwnerFound tells who owns the database.
type OwnerFound struct {
	sqlite.Holder
	Here  bool // on this host
	Alive bool // its process can be seen; only if Here
	Err   error
}

// FileContent is the database itself.
type FileContent struct {
	sqlite.Inspection
	Size, Log int64
	Full      bool // the whole database was to be checked
	Err       error
}

// DiskFound is the file system of the data folder.
type DiskFound struct {
	Kind          string // empty: unknown
	Free, Total   int64
	Files, Inodes int64 // free inodes and all; 0 of all: the file system does not count them
	Err           error
}

// SyncFound tells how long small synced writes took.
type SyncFound struct {
	Count       int
	Median, P99 time.Duration
	Skipped     string // why nothing was measured
	Err         error
}

// ListenFound is what was found at the node's address.
type ListenFound struct {
	Address string
	AnyPort bool  // port 0: nothing can be asked
	Foreign bool  // the address is not one of this machine
	Taken   bool  // something listens
	Err     error // neither an answer nor a refusal
}

// RunningFound is the answer of a running node.
type RunningFound struct {
	URL     string
	Health  *api.Health
	Node    bool         // a Holdfast answered, perhaps only that it needs a token
	Keys    *api.KeyList // what secrets are sealed with; nil: it does not say
	KeysErr error        // why it does not; nil: it keeps no secrets
	Err     error
}

// CertFound is a certificate in a file.
type CertFound struct {
	Path  string
	Until time.Time
	Err   error
}

// PeerFound is one destination.
type PeerFound struct {
	Name, URL  string
	V1         bool
	Self       bool          // this node itself
	Kind       *adapter.Kind // of a foreign system, whose address is URL; nil: a peer
	Probed     transport.Probed
	Until      time.Time // end of the first certificate of its chain
	Sent, Came time.Time
	Err        error
}

// LocalFound is a program that messages are forwarded to.
type LocalFound struct {
	Endpoint, Address string
	Err               error
}

// BackupsFound is the folder of backups.
type BackupsFound struct {
	Exists bool
	Count  int
	Newest string
	At     time.Time
	Err    error
}

// CentralFound is the central that a site forwards to.
type CentralFound struct {
	URL, File string
	Enroll    string // the command that enrolls the site
	Site      string // central's name for this node
	Identity  error  // why the credential cannot be used
	Err       error  // why no connection was accepted
}
