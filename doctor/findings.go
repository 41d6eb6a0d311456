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

// Findings are what was measured.
type Findings struct {
	Now     time.Time
	Config  ConfigFound
	Data    string       // folder; empty: nobody knows which
	Server  *ServerFound // instead of a folder; nil: there is none
	Folder  FolderFound
	Files   []FileFound // whose permissions matter
	Owner   OwnerFound
	File    FileContent
	Damaged []sqlite.Damage // files that were set aside, and what was salvaged
	Disk    DiskFound
	Sync    SyncFound
	Listen  ListenFound
	Running RunningFound
	Cert    *CertFound // of this node's listener; nil: it has none
	Peers   []PeerFound
	Local   []LocalFound
	Central *CentralFound // nil: this node is no site
	Backups BackupsFound
	Program Program
}

// ServerFound is a PostgreSQL database.
type ServerFound struct {
	postgres.Inspection
	Address string // without its password
	SSLMode string
	Remote  bool
	Err     error // it could not be asked
}

// Program is what this binary was built from.
type Program struct{ Version, Commit, Go, Platform string }

// ConfigFound is what reading the configuration gave.
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
	Shut   bool  // a folder above keeps everybody else away
	Err    error // it cannot be looked at
	Write  error // a file cannot be made in it
}

// FileFound is a file whose permissions matter.
type FileFound struct {
	What string
	Path string
	Mode fs.FileMode
	Shut bool // a folder above keeps everybody else away
	Err  error
}

// OwnerFound is who has the database.
type OwnerFound struct {
	sqlite.Holder
	Here  bool // on this host
	Alive bool // its process can be seen, where Here
	Err   error
}

// FileContent is the database itself.
type FileContent struct {
	sqlite.Inspection
	Size, Log int64
	Full      bool // the whole integrity was asked for
	Err       error
}

// DiskFound is the file system of the data folder.
type DiskFound struct {
	Kind          string // empty: not known
	Free, Total   int64
	Files, Inodes int64 // free ones and all; 0 of all: it does not count them
	Err           error
}

// SyncFound is how long small synced writes took.
type SyncFound struct {
	Count       int
	Median, P99 time.Duration
	Skipped     string // why it was not measured
	Err         error
}

// ListenFound is what happens at the node's address.
type ListenFound struct {
	Address string
	AnyPort bool  // port 0: there is nothing to ask
	Foreign bool  // the address is not one of this machine
	Taken   bool  // something listens
	Err     error // neither answered nor refused
}

// RunningFound is what a node said.
type RunningFound struct {
	URL    string
	Health *api.Health
	Node   bool // a Holdfast answered, perhaps only that it wants a token
	Err    error
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
	Self       bool          // no other node
	Kind       *adapter.Kind // no peer: URL is its address; nil: a peer
	Probed     transport.Probed
	Until      time.Time // when the first certificate of its chain ends
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

// CentralFound is where a site forwards to.
type CentralFound struct {
	URL, File string
	Enroll    string // the command
	Site      string // by which central knows this node
	Identity  error  // the credential cannot be used
	Err       error  // nobody takes connections
}
