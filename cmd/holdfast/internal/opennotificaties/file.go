// Package opennotificaties reads the file with which Open Notificaties is set up (setup_configuration).
//
// It understands the blocks that say something about channels, subscriptions, retries, clients and the
// Autorisaties API, and reads a block only where its flag enables it, as the upstream does. It promises
// that every fault has its line, and that no fault and no note shows a secret.
package opennotificaties

import (
	"time"

	"github.com/holdfast-mq/holdfast/internal/setting"
)

// File is what a file says.
type File struct {
	Channels      []Channel
	Subscriptions []Subscription
	Schedule      *Schedule // nil: it says nothing of retries
	Clients       []Client
	// Authorizations is the Autorisaties API; nil: there is none.
	Authorizations *Service
	Notes          []Note // what a person should know, by lines

	report *setting.Report
}

// Fault returns the fault of a value that a node found, with its line. The path is one of this file, or
// below one.
func (f *File) Fault(path, value, problem string) setting.Fault {
	fault := f.report.At(path)
	fault.Value, fault.Problem = value, problem
	return fault
}

// Note is something that is not done, or not as it may look.
type Note struct {
	Line int
	Text string
}

// Channel is a kanaal. Its name is in the file once. What is nil is not in the file.
type Channel struct {
	Path          string // in the file
	Name          string
	Documentation *string
	Filters       []string
}

// Subscription is an abonnement. Its id is in the file once. What is nil is not in the file.
type Subscription struct {
	Path          string
	ID            string // a UUID in its usual form
	URL           string
	Authorization *Authorization
	CloudEvents   *bool   // it gets notifications as CloudEvents
	Groups        []Group // of notifications
	Types         []Type  // of CloudEvents
}

// Group asks for the notifications of a channel that all filters fit.
type Group struct {
	Path    string
	Channel string
	Filters map[string]string
}

// Type asks for CloudEvents whose type contains a text, and that all filters fit.
type Type struct {
	Contains string
	Filters  map[string]string
}

// Authorization is how a subscriber is called. The zero value is without any.
type Authorization struct {
	Kind   string // key, zgw or oauth2, as in the operator API; empty: none
	Client string // of zgw and oauth2
	URL    string // of oauth2: of the token endpoint
	Scopes []string
	Secret string // of key: the whole value of the header Authorization
}

// Schedule is when a delivery is tried again. A zero stands for the default.
type Schedule struct {
	Retries     int
	Factor, Cap time.Duration
	Base        int
}

// Client is who may call, and what signs its tokens.
type Client struct {
	ID, Secret string
}

// Service is an API that is called.
type Service struct {
	URL    string
	Client string
	Secret string
}
