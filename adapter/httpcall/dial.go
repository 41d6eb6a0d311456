package httpcall

import (
	"errors"
	"net"
)

// dialFailed says whether no connection came about, so that certainly nothing
// was taken.
func dialFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
