package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// NewToken is what POST /v1/tokens takes.
type NewToken struct {
	Name string `json:"name" minLength:"1" maxLength:"64" doc:"Who or what will use it; it stands in histories." example:"erp"`
	Role Role   `json:"role" enum:"read,operate,admin" doc:"read looks; operate also sends, retries, discards and marks done; admin also makes tokens and backups, and changes channels and lists."`
}

// Token is a token without its secret.
type Token struct {
	Name     string     `json:"name"`
	Role     Role       `json:"role" enum:"read,operate,admin"`
	Created  *time.Time `json:"created,omitempty"`
	LastUsed *time.Time `json:"lastUsed,omitempty" doc:"Absent: never, or nobody noted it."`
}

// CreatedToken is a new token with its secret, which is shown this once.
type CreatedToken struct {
	Name   string `json:"name"`
	Role   Role   `json:"role" enum:"read,operate,admin"`
	Secret string `json:"secret" doc:"Send it as Authorization: Bearer …. The node keeps only a hash of it: it cannot be shown again."`
}

// TokenList is all tokens of a node, by name.
type TokenList struct {
	Tokens []Token `json:"tokens" nullable:"false"`
}

type tokensOutput struct{ Body TokenList }

type createTokenInput struct{ Content body }

type createTokenOutput struct{ Body CreatedToken }

type deleteTokenInput struct {
	Name  string `path:"name" doc:"The token's name."`
	Force bool   `query:"force" doc:"Also the last one with the role admin."`
}

func (b *builder) tokens() {
	unsupported := "This node keeps no tokens."
	handle(b, route{
		method: http.MethodGet, path: "/v1/tokens", id: "list-tokens", tag: "tokens", role: Admin,
		summary: "List tokens", description: "Without their secrets, which the node does not have.",
		problems: map[kind]string{kindUnsupported: unsupported},
	}, b.listTokens)
	handle(b, route{
		method: http.MethodPost, path: "/v1/tokens", id: "create-token", tag: "tokens", role: Admin,
		summary: "Create a token", description: "The answer holds its secret, this once.",
		status: http.StatusCreated,
		problems: map[kind]string{
			kindConflict: "The name is taken.", kindUnsupported: unsupported, kindDiskFull: "The disk is full; no token was made.",
		},
		request: reflect.TypeFor[NewToken](), bodyRequired: true, requestSample: json.RawMessage(`{"name":"erp","role":"operate"}`),
	}, b.createToken)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/tokens/{name}", id: "delete-token", tag: "tokens", role: Admin,
		summary: "Delete a token", description: "Requests that use it are refused from now on. The last one with the role admin stays unless force is said.",
		problems: map[kind]string{
			kindNotFound: "There is no such token.", kindConflict: "It is the last token with the role admin.", kindUnsupported: unsupported, kindDiskFull: "The disk is full; nothing was changed.",
		},
	}, b.deleteToken)
}

func noTokens() *Problem { return kindUnsupported.problem("this node keeps no tokens") }

func (s *Server) listTokens(ctx context.Context, _ *struct{}) (*tokensOutput, error) {
	if s.Tokens == nil {
		return nil, noTokens()
	}
	list := []Token{}
	err := s.Tokens.EachToken(ctx, func(name, role string, created, lastUsed time.Time) {
		list = append(list, Token{Name: name, Role: Role(role), Created: instant(created), LastUsed: instant(lastUsed)})
	})
	if err != nil {
		return nil, s.refuse(ctx, "list tokens", err)
	}
	return &tokensOutput{TokenList{list}}, nil
}

func (s *Server) createToken(ctx context.Context, in *createTokenInput) (*createTokenOutput, error) {
	if s.Tokens == nil {
		return nil, noTokens()
	}
	var req NewToken
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if faults = append(faults, checkToken(req)...); len(faults) > 0 {
		return nil, invalid(withoutRepeats(faults)...)
	}
	secret := newSecret()
	err := s.Tokens.CreateToken(ctx, req.Name, string(req.Role), sha256.Sum256([]byte(secret)))
	if errors.Is(err, holdfast.ErrConflict) {
		return nil, kindConflict.problem(fmt.Sprintf("there is a token %q already; delete it first, or take another name", req.Name),
			Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if err != nil {
		return nil, s.refuse(ctx, "create the token", err)
	}
	return &createTokenOutput{CreatedToken{req.Name, req.Role, secret}}, nil
}

func (s *Server) deleteToken(ctx context.Context, in *deleteTokenInput) (*struct{}, error) {
	if s.Tokens == nil {
		return nil, noTokens()
	}
	if !in.Force {
		last, err := s.isLastAdmin(ctx, in.Name)
		if err != nil {
			return nil, s.refuse(ctx, "delete the token", err)
		}
		if last {
			return nil, kindConflict.problem("it is the last token with the role admin: nobody could make another over the API, nor "+
				"operate a node that asks for tokens; make another first, or say force", Fault{Field: "name", Value: clip(in.Name), Problem: "is the last of its role"})
		}
	}
	err := s.Tokens.DeleteToken(ctx, in.Name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, kindNotFound.problem(fmt.Sprintf("there is no token %q", clip(in.Name)),
			Fault{Field: "name", Value: clip(in.Name), Problem: "is not the name of a token"})
	}
	if err != nil {
		return nil, s.refuse(ctx, "delete the token", err)
	}
	return nil, nil //nolint:nilnil // huma's way to answer 204
}

// isLastAdmin says whether there is no other token with the role admin.
func (s *Server) isLastAdmin(ctx context.Context, name string) (bool, error) {
	this, others := false, 0
	err := s.Tokens.EachToken(ctx, func(one, role string, _, _ time.Time) {
		switch {
		case Role(role) != Admin:
		case one == name:
			this = true
		default:
			others++
		}
	})
	return this && others == 0, err
}
