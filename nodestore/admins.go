package nodestore

import (
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/people"
)

// Who can operate the node for good. Of two transactions that lock them, one sees what the other has done. Every
// transaction locks people before tokens, and in the order of their names.
const (
	lockAdminPeople = `SELECT name FROM hf_person WHERE role = 'admin' AND password <> '' AND disabled IS NULL ORDER BY name FOR UPDATE`
	lockAdminTokens = `SELECT name FROM hf_token WHERE role = 'admin' AND until IS NULL ORDER BY name FOR UPDATE`
)

// admin is one of those who can operate the node for good: a person or a token.
type admin struct{ person, token string }

// lockAdmins returns who can operate the node for good. Until the transaction ends, nobody else takes that from them.
func lockAdmins(tx side.Tx) (all []admin, err error) {
	err = tx.Read(lockAdminPeople, nil, func(scan side.Scan) error {
		all = append(all, admin{})
		return scan(&all[len(all)-1].person)
	})
	if err == nil {
		err = tx.Read(lockAdminTokens, nil, func(scan side.Scan) error {
			all = append(all, admin{})
			return scan(&all[len(all)-1].token)
		})
	}
	return all, err
}

// keepAdmin refuses with people.ErrNoAdmin to take away the last one, unless it is forced.
func keepAdmin(tx side.Tx, who admin, force bool) error {
	all, err := lockAdmins(tx)
	if err == nil && !force && len(all) == 1 && all[0] == who {
		err = people.ErrNoAdmin
	}
	return err
}
