package rows

// NotificationBody is what people read, once it is not in a message any more. Its seq is that of the
// first copy of the notification.
type NotificationBody struct {
	Seq     int64  `row:"seq,key,of=hf_notification"`
	Payload []byte `row:"payload"`
}

// Target is what became of one recipient. Its seq is that of the message.
type Target struct {
	Seq       int64   `row:"seq,key,of=hf_notification|hf_message"`
	Channel   string  `row:"channel,key"`
	Address   string  `row:"address,key"`
	Name      string  `row:"name"`
	Result    int64   `row:"result,final=1"` // of those that have it nobody is asked again
	Code      string  `row:"code"`
	Text      string  `row:"text"`
	Receipt   string  `row:"receipt"`
	Maybe     bool    `row:"maybe"`
	Attempts  int64   `row:"attempts"`
	Cycle     int64   `row:"cycle"` // of the message, in which it was asked last
	Server    string  `row:"server"`
	TLS       string  `row:"tls"`
	Truncated bool    `row:"truncated"`
	At        Instant `row:"at"`
}

// Table implements Row.
func (*NotificationBody) Table() string { return "hf_notification_body" }

// Table implements Row.
func (*Target) Table() string { return "hf_target" }
