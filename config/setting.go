package config

import "github.com/holdfast-mq/holdfast/internal/setting"

// Never in a TTL or a retention means that no time ends it; in Backup.Every, that no backup is made. The
// file says "none" for a TTL, "forever" for a retention and "off" for backups.
const Never = setting.Never

type (
	// Secret is a key that signs or verifies messages, or proves who calls. Printed in any form, it shows as
	// "[secret]".
	Secret = setting.Secret
	// Fault is one fault with its place and what to do about it.
	Fault = setting.Fault
	// Warning is a Fault that does not keep a node from running.
	Warning = setting.Warning
	// Error holds every fault of a configuration.
	Error = setting.Error
)

// NewSecret returns a secret with a copy of key.
func NewSecret(key []byte) Secret { return setting.NewSecret(key) }
