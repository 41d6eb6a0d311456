package notificaties

import (
	"errors"

	"github.com/holdfast-mq/holdfast"
)

// notStored returns why a change was not stored, as a problem where the caller can do something about it.
func notStored(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, holdfast.ErrState):
		return conflict()
	case errors.Is(err, holdfast.ErrInvalid):
		return invalid(InvalidParam{whole, "invalid", clip(err.Error())})
	case errors.Is(err, holdfast.ErrUnavailable):
		return busy()
	}
	return err
}
