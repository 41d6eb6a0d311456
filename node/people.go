package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/people"
)

// peopled knows whether there is a person: then requests need a token or a session, also where they
// would need none. Another node of the same store learns of the first one within seconds.
type peopled struct {
	are atomic.Bool

	mu    sync.Mutex
	since int // how many this node has added
}

// added tells that this node has added a person.
func (p *peopled) added() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since++
	p.are.Store(true)
}

// look asks the store.
func (p *peopled) look(ctx context.Context, store people.Store) error {
	p.mu.Lock()
	are, before := false, p.since
	p.mu.Unlock()
	err := store.EachPerson(ctx, func(*people.Person) { are = true })
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && (are || p.since == before) { // else somebody was added behind the look
		p.are.Store(are)
	}
	return err
}

// closed reports whether requests need a token or a session because there are people.
func (n *Node) closed() bool { return n.cfg.Tokens != config.TokensNever && n.people.are.Load() }

// factorTable is the table of the secrets of second factors.
const factorTable = "person"

// factors are the sealed secrets of second factors.
type factors struct {
	folder *folder
	store  people.Store
}

var (
	_ admin.FactorSealer = factors{}
	_ keyring.Holder     = factors{}
)

func factorOf(person string) keyring.Context {
	return keyring.Context{Table: factorTable, Row: person, Column: "totp"}
}

// Ready implements admin.FactorSealer. A site has no keys.
func (f factors) Ready() bool {
	ring := f.folder.ring.Load()
	return ring != nil && ring.Newest() != ""
}

// Seal implements admin.FactorSealer.
func (f factors) Seal(person string, secret []byte) (string, error) {
	return f.folder.ring.Load().Seal(factorOf(person), secret)
}

// Open implements admin.FactorSealer.
func (f factors) Open(person, sealed string) ([]byte, error) {
	ring := f.folder.ring.Load()
	if ring == nil {
		return nil, keyring.ErrNoKey
	}
	return ring.Open(factorOf(person), sealed)
}

// Table implements keyring.Holder.
func (factors) Table() string { return factorTable }

// Values implements keyring.Holder. People are few: all are read.
func (f factors) Values(ctx context.Context, after string, limit int) (values []keyring.Value, err error) {
	err = f.store.EachPerson(ctx, func(p *people.Person) {
		if p.TOTP != "" && p.Name > after && len(values) < limit {
			values = append(values, keyring.Value{Place: p.Name, At: factorOf(p.Name), Sealed: p.TOTP})
		}
	})
	return values, err
}

// Replace implements keyring.Holder.
func (f factors) Replace(ctx context.Context, changes []keyring.Change) error {
	for _, c := range changes {
		err := f.store.ChangePerson(ctx, &people.Change{Name: c.Place, Quiet: true, Apply: func(p *people.Person) error {
			if p.TOTP == c.Sealed {
				p.TOTP = c.New
			}
			return nil
		}})
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
			return fmt.Errorf("person %s: %w", c.Place, err)
		}
	}
	return nil
}
