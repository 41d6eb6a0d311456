package config

import (
	"time"
)

// Default returns the configuration of a standalone node without a file. It lacks only the node's id; Load
// takes the host name for it.
func Default() *Config {
	c := &Config{}
	configKeys(nil).Reset(c)
	return c
}

// DefaultDestination returns a destination without its URL and its secret.
func DefaultDestination() (d Destination) {
	destinationKeys().Reset(&d)
	return d
}

// DefaultForeign returns a destination that is not a peer, without its settings. It retries at fixed
// intervals, and its messages do not expire (SF-06, SF-07, SF-32).
func DefaultForeign() Destination {
	d := DefaultDestination()
	d.Retry, d.TTL = DefaultRetry(Fixed), Never
	return d
}

// DefaultRetry returns the defaults of a policy: OI-05 for Exponential, SF-32 for Fixed. A List lacks its waits.
func DefaultRetry(p Policy) Retry {
	switch p {
	case Exponential:
		return Retry{
			Policy: p, Base: 2 * time.Second, Cap: 5 * time.Minute, Factor: 2,
			Jitter: 500 * time.Millisecond, Retries: 5,
		}
	case Fixed:
		return Retry{Policy: p, Interval: 30 * time.Second, Retries: 50}
	case List:
		return Retry{Policy: p}
	}
	return Retry{Policy: p}
}
