package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
)

// A UUID of version 8 has 48 bits of our own, the version, 12 bits of our own, the variant, and 62 bits of
// our own. An event's id has its time in the first 60: microseconds since 1970. So ids are in the order of
// time, as new rows are, and a record is found by its id among those of its time.

// EventID returns the id of the event that happened at a time and has a name. It has 60 bits of the time
// and 62 bits of the name's SHA-256.
func EventID(at time.Time, name []byte) holdfast.ID {
	var u uuid.UUID
	hash := sha256.Sum256(name)
	copy(u[8:], hash[:])
	micros := uint64(at.UnixMicro())
	binary.BigEndian.PutUint64(u[:], micros<<4&^0xffff|micros&0xfff) // the lower 12 bits stand after the version
	u[6] = u[6]&0x0f | 8<<4
	u[8] = u[8]&0x3f | 0x80
	return holdfast.ID(u.String())
}

// TimeOf returns the microseconds since 1970 that an event's id has, and whether it is an event's id.
func TimeOf(id holdfast.ID) (micros int64, ok bool) {
	u, ok := id.UUID()
	if !ok || u[6]>>4 != 8 {
		return 0, false
	}
	high := int64(binary.BigEndian.Uint64(u[:])) >> 16
	return high<<12 | int64(binary.BigEndian.Uint16(u[6:])&0xfff), true
}
