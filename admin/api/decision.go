package api

// RetryRequest is what POST /v1/messages/{id}/retry takes.
type RetryRequest struct {
	TTL   string `json:"ttl,omitempty" doc:"A new TTL, as a duration from now. Absent: as long as the message had at first." example:"24h"`
	Force bool   `json:"force,omitempty" doc:"Send it even if the receiver may have forgotten the id and might do it a second time."`
}

// RescheduleRequest is what POST /v1/messages/{id}/reschedule takes. It has one of the two fields.
type RescheduleRequest struct {
	In string `json:"in,omitempty" doc:"How long from now, as a duration." example:"2h"`
	At string `json:"at,omitempty" doc:"When, by the node's clock, as RFC 3339 writes it; excludes in." example:"2026-11-30T06:00:00Z"`
}
