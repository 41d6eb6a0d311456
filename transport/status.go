package transport

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/wire"
)

// statusFailure classifies a response without a reply of our protocol: a proxy's, or that of a peer
// that knows only OI-20.
//
// Only a status about this very message parks it (400, 413, 422). Any other refusal would meet
// every message of the lane, so the lane is held and no message is charged.
func statusFailure(status int) *holdfast.Failure {
	f := &holdfast.Failure{
		Code: "http_" + strconv.Itoa(status),
		Err:  fmt.Errorf("HTTP status %d %s", status, http.StatusText(status)),
	}
	switch {
	case status >= 200 && status < 300:
		// OI-20: a reply without ack is a failed attempt. The answering server may still have
		// passed the message on.
		f.Code, f.MaybeDelivered = CodeNoAck, true
		f.Err = fmt.Errorf("HTTP status %d without an ack", status)
	case status >= 300 && status < 400:
		f.Outcome, f.Code = holdfast.LaneFault, "redirect"
		f.Err = fmt.Errorf("HTTP status %d: redirect refused", status)
	case status == http.StatusBadRequest, status == http.StatusUnprocessableEntity:
		f.Outcome, f.Reason = holdfast.Permanent, holdfast.ReasonPermanent
	case status == http.StatusRequestEntityTooLarge:
		f.Outcome, f.Reason = holdfast.Permanent, holdfast.ReasonTooLarge // the code says that no reply of ours did it
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		f.MaybeDelivered = true // a proxy lost the answer
	case status >= 500:
	default:
		f.Outcome = holdfast.LaneFault
	}
	return f
}

// replyStatus returns the HTTP status of a reply, for peers that read nothing else.
func replyStatus(r *wire.Reply) int {
	if r.Acknowledged {
		return http.StatusOK
	}
	switch r.Outcome {
	case holdfast.Permanent.String():
		switch r.Reason {
		case holdfast.ReasonConflict:
			return http.StatusConflict
		case holdfast.ReasonNoEndpoint:
			return http.StatusNotFound
		case holdfast.ReasonTooOld:
			return http.StatusGone
		case holdfast.ReasonTooLarge:
			return http.StatusRequestEntityTooLarge
		case holdfast.ReasonPermanent, holdfast.ReasonUndecodable, holdfast.ReasonExhausted, holdfast.ReasonOperator, holdfast.ReasonRejected:
		}
		return http.StatusUnprocessableEntity
	case holdfast.NotStarted.String(), holdfast.Unreachable.String(), holdfast.LaneFault.String():
		return http.StatusServiceUnavailable
	}
	if r.RetryAfter > 0 || r.Code == wire.CodeStopping || r.Code == wire.CodeDiskFull {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
