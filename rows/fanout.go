package rows

// Topic is a name under which programs publish events. A deleted one stays, so that who follows the
// versions learns of it.
type Topic struct {
	Name          string  `row:"name,key,book,exact"`
	Description   string  `row:"description"`
	Documentation string  `row:"documentation"` // a link
	Attributes    string  `row:"attributes"`    // JSON: names
	Version       int64   `row:"version"`       // shared with subscriptions; see Subscription
	Gone          bool    `row:"gone"`
	Changed       Instant `row:"changed"`
}

// Subscription is one version of a subscription. Each change makes a version; a deleted subscription ends
// with one that is gone. Former versions are kept as long as an event may ask for them.
type Subscription struct {
	ID       string  `row:"id,key,book"`
	Version  int64   `row:"version,key"` // grows over all changes of topics and subscriptions
	Until    int64   `row:"until"`       // the version that took its place, or its own if it is gone; zero: none did
	Ended    Instant `row:"ended,null"`  // when
	Gone     bool    `row:"gone"`
	State    int64   `row:"state"`
	Why      string  `row:"why"`            // of the state
	Actor    string  `row:"actor"`          // who set the state
	Since    Instant `row:"since"`          // of the state
	Topics   string  `row:"topics,exact"`   // JSON
	Filter   string  `row:"filter,exact"`   // JSON
	Settings string  `row:"settings,exact"` // JSON: where to and how
	Created  Instant `row:"created"`
	Changed  Instant `row:"changed"`
}

// Event is what a program has published. Its payload and its name are those of its bundle, whose number it
// has. It stands also where nobody has subscribed to it.
type Event struct {
	Seq        int64   `row:"seq,key,parent,of=hf_bundle"`
	ID         string  `row:"id,exact"`
	Source     string  `row:"source,exact"`
	Topic      string  `row:"topic,exact"`
	Type       string  `row:"type,exact"`
	Subject    string  `row:"subject"`
	At         int64   `row:"at"`         // by its publisher, for people: microseconds since 1970
	Attributes string  `row:"attributes"` // JSON
	Media      string  `row:"media"`      // type of the payload; empty: application/json
	Actor      string  `row:"actor"`      // who published it
	Matched    int64   `row:"matched"`    // subscriptions
	Version    int64   `row:"version"`    // of the subscriptions among which they were
	Received   Instant `row:"received"`
}

// Delivery is one subscription's part of an event, or of a resend of one. Its seq is that of the message.
type Delivery struct {
	Seq          int64   `row:"seq,key"`
	Event        int64   `row:"event,beside"` // of a resend: the number of its bundle
	Subscription string  `row:"subscription,exact"`
	Version      int64   `row:"version"`    // of the subscription
	Message      string  `row:"message"`    // its id
	State        int64   `row:"state,null"` // of the message when it was purged; zero: it is there
	Settled      Instant `row:"settled,null"`
	Resends      int64   `row:"resends,null"` // the event that is sent again; zero: this is a first delivery, and the next are empty
	Request      string  `row:"request,null"` // the id of the resend
	Actor        string  `row:"actor,null"`   // who asked for it
}

// Table implements Row.
func (*Topic) Table() string { return "hf_topic" }

// Table implements Row.
func (*Subscription) Table() string { return "hf_subscription" }

// Table implements Row.
func (*Event) Table() string { return "hf_event" }

// Table implements Row.
func (*Delivery) Table() string { return "hf_delivery" }
