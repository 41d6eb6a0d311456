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
	"github.com/holdfast-mq/holdfast/admin/api"
)

type tokensOutput struct{ Body api.TokenList }

type createTokenInput struct{ Content body }

type createTokenOutput struct{ Body api.CreatedToken }

type deleteTokenInput struct {
	Name  string `path:"name" doc:"The token's name."`
	Force bool   `query:"force" doc:"Also the last one with the role admin."`
}

func (b *builder) tokens() {
	unsupported := "This node keeps no tokens."
	handle(b, route{
		method: http.MethodGet, path: "/v1/tokens", id: "list-tokens", tag: "tokens", role: api.Admin,
		summary: "List tokens", description: "Without their secrets, which the node does not have.",
		problems: map[api.Sort]string{api.Unsupported: unsupported},
	}, b.listTokens)
	handle(b, route{
		method: http.MethodPost, path: "/v1/tokens", id: "create-token", tag: "tokens", role: api.Admin,
		summary: "Create a token", description: "The answer holds its secret, this once.",
		status: http.StatusCreated,
		problems: map[api.Sort]string{
			api.Conflict: "The name is taken.", api.Unsupported: unsupported, api.DiskFull: "The disk is full; no token was made.",
		},
		request: reflect.TypeFor[api.NewToken](), bodyRequired: true, requestSample: json.RawMessage(`{"name":"erp","role":"operate"}`),
	}, b.createToken)
	handle(b, route{
		method: http.MethodDelete, path: "/v1/tokens/{name}", id: "delete-token", tag: "tokens", role: api.Admin,
		summary: "Delete a token", description: "Requests that use it are refused from now on. The last one with the role admin stays unless force is said.",
		problems: map[api.Sort]string{
			api.NotFound: "There is no such token.", api.Conflict: "It is the last token with the role admin.", api.Unsupported: unsupported, api.DiskFull: "The disk is full; nothing was changed.",
		},
	}, b.deleteToken)
}

func noTokens() *api.Problem { return api.Unsupported.Problem("this node keeps no tokens") }

func (s *Server) listTokens(ctx context.Context, _ *struct{}) (*tokensOutput, error) {
	if s.Tokens == nil {
		return nil, noTokens()
	}
	list := []api.Token{}
	err := s.Tokens.EachToken(ctx, func(name, role string, created, lastUsed time.Time) {
		list = append(list, api.Token{Name: name, Role: api.Role(role), Created: instant(created), LastUsed: instant(lastUsed)})
	})
	if err != nil {
		return nil, s.refuse(ctx, "list tokens", err)
	}
	return &tokensOutput{api.TokenList{Tokens: list}}, nil
}

func (s *Server) createToken(ctx context.Context, in *createTokenInput) (*createTokenOutput, error) {
	if s.Tokens == nil {
		return nil, noTokens()
	}
	var req api.NewToken
	faults, p := in.Content.decode(&req)
	if p != nil {
		return nil, p
	}
	if faults = append(faults, checkToken(req)...); len(faults) > 0 {
		return nil, api.Faulty(withoutRepeats(faults)...)
	}
	secret := api.NewSecret()
	err := s.Tokens.CreateToken(ctx, req.Name, string(req.Role), sha256.Sum256([]byte(secret)))
	if errors.Is(err, holdfast.ErrConflict) {
		return nil, api.Conflict.Problem(fmt.Sprintf("there is a token %q already; delete it first, or take another name", req.Name),
			api.Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if err != nil {
		return nil, s.refuse(ctx, "create the token", err)
	}
	return &createTokenOutput{api.CreatedToken{Name: req.Name, Role: req.Role, Secret: secret}}, nil
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
			return nil, api.Conflict.Problem("it is the last token with the role admin: nobody could make another over the API, nor "+
				"operate a node that asks for tokens; make another first, or say force", api.Fault{Field: "name", Value: api.Clip(in.Name), Problem: "is the last of its role"})
		}
	}
	err := s.Tokens.DeleteToken(ctx, in.Name)
	if errors.Is(err, holdfast.ErrNotFound) {
		return nil, api.NotFound.Problem(fmt.Sprintf("there is no token %q", api.Clip(in.Name)),
			api.Fault{Field: "name", Value: api.Clip(in.Name), Problem: "is not the name of a token"})
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
		case api.Role(role) != api.Admin:
		case one == name:
			this = true
		default:
			others++
		}
	})
	return this && others == 0, err
}
