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

// What a caller of Enroll branches on.
var (
	// ErrEnrolled says that a file holds a credential already.
	ErrEnrolled = errors.New("the site is enrolled")
	// ErrToken says that central does not take the token.
	ErrToken = errors.New("central does not take the token")
	// ErrUnreachable says that central is not there, or not as it should be.
	ErrUnreachable = errors.New("cannot reach central")
)

// EnrollConfig says where a site enrolls, and as what. URL, Token and File are
// needed.
type EnrollConfig struct {
	URL     string // of central: https://, or http:// on the loopback
	Token   string // of Central.Add or Rotate
	File    string // where the credential goes
	Force   bool   // replace the credential of another enrolment
	Version string // of the program
	TLS     Files
	// Dial opens connections in another way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// pending is an enrolment that central may have taken without our knowing.
type pending struct {
	Token      string `json:"tokenHash"`
	Credential string `json:"credential"`
}

// Enroll makes a credential, makes it known at central by the token, and keeps
// it in the file, with mode 0600. It may be called again when its answer was
// lost or the process died: the same credential is kept beside the file until
// central has taken it, and central takes that one again.
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
	var hidden secrets.Set // whatever answers there may quote what it was sent
	hidden.Add(conf.Token, credential)
	var out enrolled
	if err := client.Ask(ctx, EnrollPath, enrollment{Credential: credential, Version: conf.Version}, &out); err != nil {
		return Identity{}, explain(hidden.Error(err))
	}
	if err := CheckName(out.Site); err != nil {
		return Identity{}, fmt.Errorf("central answers with a site that cannot be: %w", hidden.Error(err))
	}
	id := Identity{Site: out.Site, Central: conf.URL, Credential: credential}
	if err := writeFile(conf.File, id); err != nil {
		return Identity{}, err
	}
	// Kept if this fails, it would only be used for the same token again.
	if err := os.Remove(beside); err != nil && !isAbsent(err) {
		return id, err
	}
	return id, nil
}

// explain says what whoever enrolls can do.
func explain(err error) error {
	switch f := holdfast.AsFailure(err); {
	case f.Code == transport.CodeCredential:
		return fmt.Errorf("%w: it is spent, older than a day, or of another central; ask for a new one with holdfast sites rotate", ErrToken)
	case f.Code == codeDoubted:
		return fmt.Errorf("%w: central doubts its clock, by which the token has ended: enroll when central believes its clock (holdfast status says when), or with a new token of holdfast sites rotate", sites.ErrDoubted)
	case f.Outcome == holdfast.Unreachable, f.Outcome == holdfast.LaneFault:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// free says whether the file may be written.
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

// prepare makes the credential durable before central hears of it.
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
