// Package sites defines what a central keeps about its sites. A store implements it without
// importing the protocol of package link, and so without a server.
package sites

import (
	"context"
	"errors"
	"time"
)

// ErrDoubted means that an enrolment token has expired if the store's clock is right, but the store
// doubts its clock. The token is then neither accepted nor expired.
var ErrDoubted = errors.New("the token has expired by a clock that is doubted")

// How long central accepts a site's proof of identity. The store counts time that it has seen pass,
// whatever its clock shows.
const (
	TokenFor   = 24 * time.Hour // an enrolment token, until it is used
	OverlapFor = 24 * time.Hour // the previous credential, after a new one is enrolled
)

// Info is a site as central knows it. A zero time means never.
type Info struct {
	Name       string
	Created    time.Time
	Enrolled   time.Time // when its present credential was registered
	Seen       time.Time // last poll, to about a minute
	Reports    []Report  // the last one of each of its nodes, the newest first
	Revoked    time.Time
	TokenUntil time.Time // while an enrolment token is unused
	Version    string    // of the site's program; empty: unknown
}

// MostReports is how many nodes of a site have a report. The oldest reports make room.
const MostReports = 4

// Report is what a node of a site has said about itself.
type Report struct {
	Node string
	At   time.Time // when the store took it; set by the store
	Text string    // JSON, as package link writes it
}

// Store keeps the sites of a central. Its methods are atomic and may be called concurrently. Tokens
// and credentials are passed only as hashes. storetest.Run is the suite that a store must pass.
type Store interface {
	// AddSite makes a site that may enroll with the token for TokenFor. It returns
	// holdfast.ErrConflict if the name is taken; the name of a revoked site is free.
	AddSite(ctx context.Context, name string, token [32]byte, actor string) error
	// RotateSite gives a site a new token in place of any unused one. The site's credential stays
	// good until the token is used; with now the credentials end at once. It returns
	// holdfast.ErrNotFound if there is no such site or it is revoked.
	RotateSite(ctx context.Context, name string, token [32]byte, now bool, actor string) error
	// TokenSite returns the site of a token, even if the token is spent or too old, or
	// holdfast.ErrNotFound. It spends nothing.
	TokenSite(ctx context.Context, token [32]byte) (name string, err error)
	// EnrollSite spends a token: credential becomes the site's, and the previous one stays good for
	// OverlapFor. A spent token still succeeds with the credential that it was spent for, so a site
	// whose answer was lost can ask again. If the token has expired by a doubted clock, EnrollSite
	// returns ErrDoubted and does not spend it. For any other token it returns
	// holdfast.ErrNotFound.
	EnrollSite(ctx context.Context, token, credential [32]byte) (name string, err error)
	// RevokeSite ends a site's token and credentials at once. It returns holdfast.ErrNotFound if
	// there is no such site. Revoking a site again changes nothing.
	RevokeSite(ctx context.Context, name string, actor string) error
	// FindSite returns the site of a credential, or holdfast.ErrNotFound. A previous credential
	// that has expired by a doubted clock is not accepted meanwhile.
	FindSite(ctx context.Context, credential [32]byte) (name string, err error)
	// SiteSeen records that a site was here, and what one of its nodes has reported.
	SiteSeen(ctx context.Context, name, version string, r Report) error
	// Sites lists all sites, by name.
	Sites(ctx context.Context) ([]Info, error)
	// Incarnation names the store's history. It changes as soon as the store may have lost
	// something that it had acknowledged.
	Incarnation(ctx context.Context) (string, error)
}
