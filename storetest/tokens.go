package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// tokens tests that a token is found by the hash of its secret until it is deleted, even after a
// restart.
func tokens(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"a token is found by its hash until it ends": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(1), ""))
			k.ok(k.CreateToken(k.ctx(), "ci", "admin", 0, hash(2), ""))
			k.token(1, "erp", "read")
			k.reopen()
			k.token(2, "ci", "admin")
			k.ok(k.DeleteToken(k.ctx(), "erp", true, ""))
			k.noToken(1)
			k.token(2, "ci", "admin")
			k.reopen()
			k.noToken(1)
			k.fails(k.DeleteToken(k.ctx(), "erp", false, ""), holdfast.ErrNotFound)
		},
		"a name is taken until its token ends": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(1), ""))
			k.fails(k.CreateToken(k.ctx(), "erp", "admin", 0, hash(2), ""), holdfast.ErrConflict)
			k.token(1, "erp", "read") // a conflict changes nothing
			k.noToken(2)
			k.ok(k.DeleteToken(k.ctx(), "erp", true, ""))
			k.ok(k.CreateToken(k.ctx(), "erp", "admin", 0, hash(2), ""))
			k.token(2, "erp", "admin")
		},
		"a hash is the secret of one token": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(1), ""))
			k.fails(k.CreateToken(k.ctx(), "ci", "admin", 0, hash(1), ""), holdfast.ErrConflict)
			k.token(1, "erp", "read")
		},
		"nobody is found by what is no hash of a token": func(k *kit) {
			k.noToken(0)
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(1), ""))
			k.noToken(0)
		},
		"a token that is given for a time ends with it": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "visitor", "read", 2*time.Hour, hash(1), ""))
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(2), ""))
			k.pass(2*time.Hour - time.Minute)
			k.token(1, "visitor", "read")
			k.reopen()
			k.pass(2 * time.Minute)
			k.noToken(1)
			k.token(2, "erp", "read")
			var got []string
			k.ok(k.EachToken(k.ctx(), func(name, _ string, created, _, until time.Time, ended bool) {
				got = append(got, fmt.Sprint(name, " ", ended))
				if lasts := until.Sub(created); name == "visitor" && (lasts < 2*time.Hour-time.Minute || lasts > 2*time.Hour+time.Minute) {
					k.t.Errorf("%s lasts %s", name, lasts)
				}
			}))
			equal(k, "tokens", fmt.Sprint(got), "[erp false visitor true]")
			k.fails(k.CreateToken(k.ctx(), "visitor", "read", 0, hash(3), ""), holdfast.ErrConflict) // until it is deleted
			k.ok(k.DeleteToken(k.ctx(), "visitor", false, ""))
		},
		"a token of a day at most goes a day after its end": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "visitor", "read", 24*time.Hour, hash(1), ""))
			k.ok(k.CreateToken(k.ctx(), "week", "read", 25*time.Hour, hash(2), ""))
			names := func(want string) {
				k.t.Helper()
				var got []string
				k.ok(k.EachToken(k.ctx(), func(name, _ string, _, _, _ time.Time, _ bool) { got = append(got, name) }))
				equal(k, "tokens", fmt.Sprint(got), want)
			}
			k.pass(47 * time.Hour)
			k.ok(k.CreateToken(k.ctx(), "a", "read", 0, hash(3), ""))
			names("[a visitor week]")
			k.pass(2 * time.Hour)
			k.fails(k.CreateToken(k.ctx(), "a", "read", 0, hash(4), ""), holdfast.ErrConflict)
			names("[a visitor week]")
			k.ok(k.CreateToken(k.ctx(), "b", "read", 0, hash(4), ""))
			names("[a b week]")
		},
		"tokens are listed by name, with their last use": func(k *kit) {
			k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(1), ""))
			k.ok(k.CreateToken(k.ctx(), "ci", "admin", 0, hash(2), ""))
			k.pass(time.Minute)
			k.token(1, "erp", "read")
			k.reopen()
			var got []string
			k.ok(k.EachToken(k.ctx(), func(name, role string, created, used, until time.Time, ended bool) {
				got = append(got, fmt.Sprint(name, " ", role, " ", !used.IsZero()))
				if created.IsZero() || created.After(k.now()) {
					k.t.Errorf("%s was created %s", name, created)
				}
				if !until.IsZero() || ended {
					k.t.Errorf("%s ends at %s", name, until)
				}
				if !used.IsZero() && (used.Before(created) || used.After(k.now())) {
					k.t.Errorf("%s was created %s and used %s", name, created, used)
				}
			}))
			equal(k, "tokens", fmt.Sprint(got), "[ci admin false erp read true]")
		},
	})
}

// token fails unless the secret with this hash belongs to a token.
func (k *kit) token(secret int, name, role string) {
	k.t.Helper()
	gotName, gotRole, err := k.FindToken(k.ctx(), hash(secret))
	if gotName != name || gotRole != role || err != nil {
		k.t.Errorf("secret %d is of %q, %q, %v, want %q, %q", secret, gotName, gotRole, err, name, role)
	}
}

func (k *kit) noToken(secret int) {
	k.t.Helper()
	_, _, err := k.FindToken(k.ctx(), hash(secret))
	k.fails(err, holdfast.ErrNotFound)
}
