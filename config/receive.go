package config

import (
	"time"
)

// Receive says which messages come in, and from whom.
type Receive struct {
	Window    time.Duration       // the longest that a sender may retry one message
	Sources   map[string]Source   // by the node id of the sender; key "secrets" of the file
	Endpoints map[string]Endpoint // by name
}

// Source is a peer whose messages are accepted. It holds the form of its signature and the secrets that it
// may sign with, the newest first.
type Source struct {
	HMAC    HMAC
	Secrets []Secret
}

// Endpoint says what happens to the messages for one endpoint: exactly one of Forward and Keep.
type Endpoint struct {
	Forward string        // URL of a local program
	Timeout time.Duration // of one call; zero with Keep
	Keep    bool          // the message waits in the inbox until it is marked done
}
