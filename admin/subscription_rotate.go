package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
)

// How long former secrets go on to sign.
const (
	usualOverlap   = 24 * time.Hour
	longestOverlap = 7 * 24 * time.Hour
)

// RotateSecret gives a subscription a new secret that signs, of the kind that it has. The former ones go on to sign
// for a while. If the answer is lost, ask again: what signed before still does, for that while.
func (s Subscriptions) RotateSecret(ctx context.Context, id string, req *api.SecretRotation, wrong ...api.Fault) (out api.RotatedSecret, err error) {
	overlap := usualOverlap
	if req.Overlap != "" {
		var problem string
		overlap, problem = parseDuration(req.Overlap)
		if problem == "" && (overlap < 0 || overlap > longestOverlap) {
			problem = "must be at most " + formatDuration(longestOverlap)
		}
		if problem != "" {
			wrong = append(wrong, api.Fault{Field: "overlap", Value: api.Clip(req.Overlap), Problem: problem})
		}
	}
	if len(wrong) > 0 {
		return out, api.Faulty(withoutRepeats(wrong)...)
	}
	return anew(s.Service, func() (api.RotatedSecret, error) { return s.rotate(ctx, id, overlap) })
}

func (s Subscriptions) rotate(ctx context.Context, id string, overlap time.Duration) (out api.RotatedSecret, err error) {
	one, err := s.find(ctx, id)
	if err != nil {
		return out, err
	}
	if one.Lost&fanout.LostSettings != 0 {
		return out, api.WrongState.Problem(one.Fault)
	}
	now := time.Now().UTC()
	one.Secrets = slices.DeleteFunc(slices.Clone(one.Secrets), func(k fanout.Secret) bool { return !k.Until.IsZero() && !k.Until.After(now) })
	if len(one.Secrets) == fanout.MaxSecrets && overlap > 0 {
		return out, api.WrongState.Problem(fmt.Sprintf("subscription %s has %d secrets that still sign: wait until one of them ends, or say overlap 0s", api.Clip(id), fanout.MaxSecrets))
	}
	secret, public, err := s.Hub.NewSecret(&one)
	sealed := ""
	if err == nil {
		sealed, err = s.Hub.Seal(&one, fanout.ForSigning, secret)
	}
	if err != nil {
		return out, api.Faulty(api.Fault{Field: "secrets", Problem: "cannot be replaced: " + err.Error()})
	}
	end := now.Add(overlap)
	for i := range one.Secrets {
		if k := &one.Secrets[i]; k.Until.IsZero() || k.Until.After(end) {
			k.Until = end
		}
	}
	if overlap == 0 {
		one.Secrets = nil
	}
	one.Secrets = append(one.Secrets, fanout.Secret{Sealed: sealed})
	if out.Subscription, err = s.store(ctx, one); err != nil {
		return out, err
	}
	if out.Secret, out.Public = secret, public; public != "" {
		out.Secret = "" // the subscriber only verifies
	}
	return out, nil
}
