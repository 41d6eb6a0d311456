package rows

import "github.com/holdfast-mq/holdfast"

// Notification is one copy of a notification. Its seq is that of its message. If the message is
// purged, the columns after Purged keep its last values.
type Notification struct {
	Seq       int64       `row:"seq,key,split"`
	Bundle    int64       `row:"bundle,beside"` // number of the notification's bundle
	Copy      int64       `row:"copy"`
	ID        holdfast.ID `row:"id"`
	Message   holdfast.ID `row:"message"`
	Channel   string      `row:"channel"`
	Type      string      `row:"type"`
	List      string      `row:"list"`
	Subject   string      `row:"subject"`
	Site      string      `row:"site"`
	Instance  string      `row:"instance"`
	Script    string      `row:"script"`
	Execution string      `row:"execution"`
	Parent    string      `row:"parent"`
	Enqueued  int64       `row:"enqueued"` // by the clock of its site, so not an Instant; None: unknown
	Created   Instant     `row:"created"`
	Delivered Instant     `row:"delivered"`

	Purged    bool    `row:"purged"`
	State     int64   `row:"state"`
	Settled   Instant `row:"settled"`
	Tried     Instant `row:"tried"`
	Failures  int64   `row:"failures"`
	Tries     int64   `row:"tries"`
	Cycle     int64   `row:"cycle"`
	Reason    string  `row:"reason"`
	LastError string  `row:"last_error"`
}

// Target is the outcome of one recipient. Its seq is that of the message.
type Target struct {
	Seq       int64   `row:"seq,key,of=hf_notification|hf_message"`
	Channel   string  `row:"channel,key"`
	Address   string  `row:"address,key"`
	Name      string  `row:"name"`
	Result    int64   `row:"result,final=1"` // a recipient with this result is not asked again
	Code      string  `row:"code"`
	Text      string  `row:"text"`
	Receipt   string  `row:"receipt"`
	Maybe     bool    `row:"maybe"`
	Attempts  int64   `row:"attempts"`
	Cycle     int64   `row:"cycle"` // cycle of the message in which the recipient was last asked
	Server    string  `row:"server"`
	TLS       string  `row:"tls"`
	Truncated bool    `row:"truncated"`
	At        Instant `row:"at"`
}

// Table implements Row.
func (*Notification) Table() string { return "hf_notification" }

// Table implements Row.
func (*Target) Table() string { return "hf_target" }
