// Package sites is what a central keeps of its sites. Stores implement it without the
// protocol of package link, and so without a server.
package sites

import (
	"context"
	"errors"
	"time"
)

// ErrDoubted says that an enrolment token has ended if the store's clock is right,
// and the store does not believe it: the token is neither good nor ended.
var ErrDoubted = errors.New("by the clock the token has ended, and the clock is doubted")

// How long central takes what a site proves itself by: as the store has seen time
// pass, whatever its clock shows.
const (
	TokenFor   = 24 * time.Hour // an enrolment token, until it is used
	OverlapFor = 24 * time.Hour // the former credential, after a new one is enrolled
)

// Info is a site as its central knows it. Zero times: never.
type Info struct {
	Name       string
	Created    time.Time
	Enrolled   time.Time // when its present credential was made known
	Seen       time.Time // to about a minute
	Revoked    time.Time
	TokenUntil time.Time // while an enrolment token waits to be used
	Version    string    // of the program at the site; empty: not known
}

// Store keeps sites at central. Its methods are atomic and may be called
// concurrently; tokens and credentials come as hashes only. storetest.Run is
// the suite that a store must pass.
type Store interface {
	// AddSite makes a site that may enroll with the token for TokenFor. A name
	// that is taken is holdfast.ErrConflict; one that was revoked is free.
	AddSite(ctx context.Context, name string, token [32]byte, actor string) error
	// RotateSite gives a site a new token, in place of one that it had. Its
	// credential stays good until the token is used; with now its credentials end
	// at once. holdfast.ErrNotFound: there is no such site, or it is revoked.
	RotateSite(ctx context.Context, name string, token [32]byte, now bool, actor string) error
	// TokenSite returns the site that a token is or was for, also one that is
	// spent or too old, or holdfast.ErrNotFound. It spends nothing.
	TokenSite(ctx context.Context, token [32]byte) (name string, err error)
	// EnrollSite spends a token: the site's credential is this one from now on,
	// and the former one is good for OverlapFor. A spent token still answers whoever
	// brings the credential that it was spent for: so a site whose answer was
	// lost asks again. One that ends by a clock that is doubted is ErrDoubted, and
	// is not spent. Any other token is holdfast.ErrNotFound.
	EnrollSite(ctx context.Context, token, credential [32]byte) (name string, err error)
	// RevokeSite ends a site's token and credentials at once. holdfast.ErrNotFound:
	// there is no such site. Revoking it again changes nothing.
	RevokeSite(ctx context.Context, name string, actor string) error
	// FindSite returns the site of a credential, or holdfast.ErrNotFound. A former
	// one that ends by a clock that is doubted lets nobody in meanwhile.
	FindSite(ctx context.Context, credential [32]byte) (name string, err error)
	// SiteSeen notes that a site was here.
	SiteSeen(ctx context.Context, name, version string) error
	// Sites lists all sites, by name.
	Sites(ctx context.Context) ([]Info, error)
	// Incarnation names the store's history: it is another one as soon as the
	// store may have lost what it had acknowledged.
	Incarnation(ctx context.Context) (string, error)
}
