package link

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/internal/secrets"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/transport"
)

// Errors that a caller of Enroll may branch on.
var (
	// ErrEnrolled means that the file already holds a credential.
	ErrEnrolled = errors.New("the site is enrolled")
	// ErrToken means that central refuses the token.
	ErrToken = errors.New("central refuses the token")
	// ErrUnreachable means that central cannot be reached, or does not answer as it should.
	ErrUnreachable = errors.New("cannot reach central")
)

// EnrollConfig says where and how a site enrolls. URL, Token and File are required.
type EnrollConfig struct {
	URL     string // of central: https://, or http:// on the loopback
	Token   string // from Central.Add or Rotate
	File    string // where the credential is written
	Force   bool   // replace the credential of an earlier enrolment
	Version string // of the program
	TLS     Files
	// Dial opens connections. Nil: the default dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// pending is an enrolment that central may have accepted although its answer was lost.
type pending struct {
	Token      string `json:"tokenHash"`
	Credential string `json:"credential"`
}

// Enroll makes a credential, registers it at central with the token, and keeps it in the file with
// mode 0600. If the answer was lost or the process died, call Enroll again. The same credential is
// kept beside the file until central has accepted it, and central accepts the same credential
// again.
func Enroll(ctx context.Context, conf EnrollConfig) (Identity, error) {
	id, err := enroll(ctx, &conf)
	if err != nil {
		return Identity{}, fmt.Errorf("enroll: %w", err)
	}
	return id, nil
}

func enroll(ctx context.Context, conf *EnrollConfig) (Identity, error) {
	if !bearer.WellFormed(tokenPrefix, conf.Token) {
		return Identity{}, fmt.Errorf("%w: it is mistyped or cut short: it begins with %s and has 53 characters", ErrToken, tokenPrefix)
	}
	if err := conf.free(); err != nil {
		return Identity{}, err
	}
	beside := conf.File + ".enrolling"
	credential, err := prepare(beside, conf.Token)
	if err != nil {
		return Identity{}, err
	}
	tlsConf, err := conf.TLS.client()
	if err != nil {
		return Identity{}, err
	}
	client, err := transport.NewClient(transport.ClientConfig{
		URL: conf.URL, TLS: tlsConf, Dial: conf.Dial, MaxReply: 64 << 10,
		Credential: func() (string, error) { return conf.Token, nil },
	})
	if err != nil {
		return Identity{}, err
	}
	defer client.Close()
	var hidden secrets.Set // a peer that is not central may quote what it was sent
	hidden.Add(conf.Token, credential)
	var out enrolled
	if err := client.Ask(ctx, EnrollPath, enrollment{Credential: credential, Version: conf.Version}, &out); err != nil {
		return Identity{}, explain(hidden.Error(err))
	}
	if err := CheckName(out.Site); err != nil {
		return Identity{}, fmt.Errorf("central answers with an invalid site: %w", hidden.Error(err))
	}
	id := Identity{Site: out.Site, Central: conf.URL, Credential: credential}
	if err := writeFile(conf.File, id); err != nil {
		return Identity{}, err
	}
	// If this fails the file stays; it would only be used again for the same token.
	if err := os.Remove(beside); err != nil && !isAbsent(err) {
		return id, err
	}
	return id, nil
}

// explain adds to an error what the operator can do about it.
func explain(err error) error {
	switch f := holdfast.AsFailure(err); {
	case f.Code == transport.CodeCredential:
		return fmt.Errorf("%w: it is spent, older than a day, or of another central; ask for a new one with holdfast sites rotate", ErrToken)
	case f.Code == codeDoubted:
		return fmt.Errorf("%w: the token has expired by central's clock, which central doubts: enroll when central believes its clock (holdfast status says when), or with a new token of holdfast sites rotate", sites.ErrDoubted)
	case f.Outcome == holdfast.Unreachable, f.Outcome == holdfast.LaneFault:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// free returns an error if the file must not be written.
func (conf *EnrollConfig) free() error {
	if _, err := os.Lstat(conf.File); isAbsent(err) || conf.Force && err == nil {
		return nil
	} else if err != nil {
		return err
	}
	if id, err := ReadIdentity(conf.File); err == nil {
		return fmt.Errorf("%w: %s holds the credential of site %s; replace it with --force", ErrEnrolled, conf.File, id.Site)
	}
	return fmt.Errorf("%w: %s exists; name another file, or replace it with --force", ErrEnrolled, conf.File)
}

// prepare makes the credential durable before central sees it.
func prepare(beside, token string) (credential string, err error) {
	hash := bearer.Hash(token)
	name := hex.EncodeToString(hash[:])
	text, err := namedfile.Read(beside, ownFile)
	if err != nil && !isAbsent(err) {
		return "", err
	}
	var p pending
	if err == nil && json.Unmarshal(text, &p) == nil && p.Token == name && bearer.WellFormed(credentialPrefix, p.Credential) {
		return p.Credential, nil
	}
	p = pending{Token: name, Credential: bearer.New(credentialPrefix)}
	return p.Credential, writeFile(beside, p)
}
