package admin

import (
	"context"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/people"
)

var errCode = errors.New("wrong code")

// FactorSealer seals the secrets of second factors, each for its person. Its methods may be called concurrently.
type FactorSealer interface {
	// Ready reports whether there is a key to seal with.
	Ready() bool
	Seal(person string, secret []byte) (string, error)
	Open(person, sealed string) ([]byte, error)
}

// takeCode uses up a code of a person, or returns errCode. A secret that does not open, or was lost, leaves the
// recovery codes.
func (s *Service) takeCode(p *people.Person, code string) error {
	if s.Factors != nil && p.TOTP != "" {
		if secret, err := s.Factors.Open(p.Name, p.TOTP); err == nil {
			if step, ok := people.TakeTOTP(secret, code, time.Now(), p.Step); ok {
				p.Step = step
				return nil
			}
		}
	}
	left, ok := people.TakeCode(p.Codes, code)
	if !ok {
		return errCode
	}
	p.Codes = left
	return nil
}

// NewTOTP makes a secret for a person's second factor. It is not in use before EnrollTOTP.
func (s People) NewTOTP(ctx context.Context, name string) (api.NewTOTP, error) {
	if p := s.own(ctx, name); p != nil {
		return api.NewTOTP{}, p
	}
	if p := s.noKey(); p != nil {
		return api.NewTOTP{}, p
	}
	secret := people.NewTOTP()
	return api.NewTOTP{Secret: people.TOTPText(secret), Address: people.TOTPAddress(secret, s.Name, name)}, nil
}

func (s People) noKey() *api.Problem {
	if s.Factors == nil {
		return api.Unsupported.Problem("the secret of a second factor is sealed with a key that only the running node has: start it, and ask it")
	}
	if !s.Factors.Ready() {
		return api.Unsupported.Problem("the secret of a second factor is sealed, and this node has no key for that: set secrets.key")
	}
	return nil
}

// EnrollTOTP begins to ask a person for a second factor, once a code shows that they have it. It returns new recovery codes.
func (s People) EnrollTOTP(ctx context.Context, name string, req *api.EnrollTOTP, wrong ...api.Fault) (out api.RecoveryCodes, err error) {
	if p := s.own(ctx, name); p != nil {
		return out, p
	}
	if p := s.noKey(); p != nil {
		return out, p
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(strings.TrimRight(req.Secret, "=")))
	if err != nil || len(secret) < 16 || len(secret) > 64 {
		wrong = append(wrong, api.Fault{Field: "secret", Problem: "is not one that POST has made"})
	}
	step, ok := people.TakeTOTP(secret, req.Code, time.Now(), 0)
	if !ok {
		wrong = append(wrong, api.Fault{Field: "code", Problem: "is not the code of now; is the clock of the authenticator right?"})
	}
	if len(wrong) > 0 {
		return out, api.Faulty(withoutRepeats(wrong)...)
	}
	if isSelf(ctx, name) {
		if err := s.verified(ctx, name, "password", req.Password); err != nil {
			return out, err
		}
	}
	sealed, err := s.Factors.Seal(name, secret)
	if err != nil {
		return out, s.refuse(ctx, "seal the secret", err)
	}
	list, kept := people.NewCodes()
	err = s.change(ctx, "set the second factor", &people.Change{Name: name, Code: "totp", Ends: true, But: SessionID(ctx), Apply: func(p *people.Person) error {
		if p.Subject != "" {
			return api.WrongState.Problem("the identity provider signs this person in; set a second factor there")
		}
		p.TOTP, p.Step, p.Codes = sealed, step, kept
		return nil
	}})
	return api.RecoveryCodes{Codes: list}, err
}

// RemoveTOTP no longer asks a person for a second factor. Nobody removes their own: whoever has got hold of a session
// could. EnrollTOTP sets another one, with the password.
func (s People) RemoveTOTP(ctx context.Context, name string) error {
	if isSelf(ctx, name) {
		return api.RoleLacking.Problem("nobody takes away their own second factor: set another one, or let another administrator remove it")
	}
	return s.change(ctx, "remove the second factor", &people.Change{Name: name, Code: "totp removed", Ends: true, Apply: func(p *people.Person) error {
		p.TOTP, p.Codes = "", ""
		return nil
	}})
}
