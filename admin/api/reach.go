package api

// RecipientReach is a recipient of a list, and whether a notification would reach it now.
type RecipientReach struct {
	Recipient
	State   string `json:"state" enum:"reached,waits,lost,off" doc:"waits: its channel does not deliver now; lost: nothing can reach it; off: it is disabled."`
	Problem string `json:"problem,omitempty" doc:"Why it is not reached."`
}
