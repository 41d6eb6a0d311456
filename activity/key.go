package activity

import (
	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
)

// The first byte of a key says what follows: the 16 bytes of a UUID, or a text.
const (
	isUUID = 'u'
	isText = 't'
)

// Key returns the id of a message as rows.Activity keeps it.
func Key(id holdfast.ID) []byte {
	if u, ok := id.UUID(); ok {
		return append([]byte{isUUID}, u[:]...)
	}
	return append([]byte{isText}, id...)
}

// ID reverses Key. A damaged key gives no id.
func ID(key []byte) holdfast.ID {
	if len(key) == 0 {
		return ""
	}
	if key[0] == isText {
		return holdfast.ID(key[1:])
	}
	u, err := uuid.FromBytes(key[1:])
	if err != nil {
		return ""
	}
	return holdfast.IDOf(u)
}
