package config

import "github.com/holdfast-mq/holdfast/internal/setting"

// Never as a TTL or a retention means that no time ends it, as Backup.Every
// that its time never comes. The file says "none" for a TTL, "forever" for a
// retention and "off" for backups.
const Never = setting.Never

type (
	// Secret is a key that signs or verifies messages, or proves who calls.
	// However it is printed, it shows as "[secret]".
	Secret = setting.Secret
	// Fault is one thing that is wrong, where it stands and what to do about it.
	Fault = setting.Fault
	// Warning is a Fault with which a node can run.
	Warning = setting.Warning
	// Error holds every fault of a configuration.
	Error = setting.Error
)

// NewSecret returns a secret of a copy of key.
func NewSecret(key []byte) Secret { return setting.NewSecret(key) }
