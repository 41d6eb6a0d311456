package admin

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/people"
)

// Tokens offers the tokens that give access to the node.
type Tokens struct{ *Service }

func noTokens() *api.Problem { return api.Unsupported.Problem("this node keeps no tokens") }

// List returns all tokens by name.
func (t Tokens) List(ctx context.Context) (api.TokenList, error) {
	if t.Tokens == nil {
		return api.TokenList{}, noTokens()
	}
	list := []api.Token{}
	err := t.Tokens.EachToken(ctx, func(name, rights string, created, lastUsed, until time.Time, ended bool) {
		may, _ := api.ParseGrant(rights) // of a newer version: none
		list = append(list, api.Token{
			Name: name, Role: may.Role(), Grant: may, Created: instant(created), LastUsed: instant(lastUsed), Until: instant(until), Ended: ended,
		})
	})
	if err != nil {
		return api.TokenList{}, t.refuse(ctx, "list tokens", err)
	}
	return api.TokenList{Tokens: list}, nil
}

// Create makes a token. It reports the faults in wrong together with those that it finds.
func (t Tokens) Create(ctx context.Context, req *api.NewToken, wrong ...api.Fault) (made api.CreatedToken, err error) {
	if t.Tokens == nil {
		return made, noTokens()
	}
	may, lasts, faults := readToken(req)
	if faults = slices.Concat(wrong, faults); len(faults) > 0 {
		return made, api.Faulty(withoutRepeats(faults)...)
	}
	if faults, err = t.checkPortal(ctx, &may, &lasts); err != nil {
		return made, err
	} else if len(faults) > 0 {
		return made, api.Faulty(faults...)
	}
	secret := api.NewSecret()
	err = t.Tokens.CreateToken(ctx, req.Name, may.String(), lasts, sha256.Sum256([]byte(secret)), Actor(ctx))
	if errors.Is(err, holdfast.ErrConflict) {
		return made, api.Conflict.Problem(fmt.Sprintf("there is a token %q already; delete it first, or take another name", req.Name),
			api.Fault{Field: "name", Value: req.Name, Problem: "is taken"})
	}
	if errors.Is(err, holdfast.ErrNotFound) { // it was deleted meanwhile
		return made, api.Faulty(api.Fault{Field: "destinations", Value: api.Clip(fmt.Sprint(may.Destinations)), Problem: "has no subscription any more that there is"})
	}
	if err != nil {
		return made, t.refuse(ctx, "create the token", err)
	}
	made = api.CreatedToken{Name: req.Name, Role: may.Role(), Grant: may, Secret: secret}
	if lasts > 0 {
		made.Until = instant(time.Now().Add(lasts).UTC().Truncate(time.Second))
	}
	return made, nil
}

// Self returns who asks, and what they may do.
func (t Tokens) Self(ctx context.Context) api.Caller {
	may := Granted(ctx)
	return api.Caller{Name: Actor(ctx), Role: may.Role(), Grant: may}
}

// Delete removes a token. It removes the last one with the role admin that does not end only with force.
func (t Tokens) Delete(ctx context.Context, name string, force bool) error {
	if t.Tokens == nil {
		return noTokens()
	}
	err := t.Tokens.DeleteToken(ctx, name, force, Actor(ctx))
	if errors.Is(err, people.ErrNoAdmin) {
		return api.Conflict.Problem("it is the last token with the role admin that does not end: nobody could make another over the API, nor "+
			"operate a node that asks for tokens; make another first, or say force", api.Fault{Field: "name", Value: api.Clip(name), Problem: "is the last of its role"})
	}
	if errors.Is(err, holdfast.ErrNotFound) {
		return api.NotFound.Problem(fmt.Sprintf("there is no token %q", api.Clip(name)),
			api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a token"})
	}
	if err != nil {
		return t.refuse(ctx, "delete the token", err)
	}
	return nil
}
