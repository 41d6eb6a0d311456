package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/internal/keyring"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// Keyring holds the keys that seal the secrets which come by the API. The zero value has none: such
// secrets are refused.
type Keyring struct {
	Key    Secret   // seals and opens
	Former []Secret // only open
}

func keyringKeys() setting.Section[Keyring] {
	key := setting.SecretKey("key", func(k *Keyring) *Secret { return &k.Key }, (*setting.Loader).Secret,
		setting.Row{Path: "env", Doc: "Variable that holds the key that [secrets given by the API](secrets.md) are sealed with in the database.", Values: setting.VariableCell, Usual: "this or `file`; without both, such secrets are refused"},
		setting.Row{Path: "file", Doc: "File that holds it. Make one with `holdfast keys create FILE`, and keep it apart from the backups.", Values: "path", Usual: "this or `env`"})
	show := key.Show
	key.Show = func(p setting.Printer, k *Keyring) *yaml.Node {
		if k.Key.IsZero() {
			return nil
		}
		return show(p, k)
	}
	return setting.Section[Keyring]{
		key,
		{
			Name: "former",
			Read: func(l *setting.Loader, k *Keyring) setting.Decode {
				return func(path string, n *yaml.Node) {
					k.Former = secretList(l, path, n)
					reported(l, path, k.Former)
				}
			},
			Show: func(_ setting.Printer, k *Keyring) *yaml.Node {
				if len(k.Former) == 0 {
					return nil
				}
				list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
				for _, s := range k.Former {
					list.Content = append(list.Content, setting.SecretNode(s))
				}
				return list
			},
			Check:  checkKeyring,
			Told:   []setting.Row{{Doc: "Keys that were `key` before. They open what `holdfast keys rotate` has not sealed anew yet.", Values: "list of `{env: NAME}` and `{file: PATH}`", Usual: "none"}},
			Schema: setting.Schema{"type": "array", "items": setting.PlaceSchema()},
		},
	}
}

// checkKeyring checks the lengths of all keys.
func checkKeyring(r *setting.Report, path string, k *Keyring) {
	check := func(at string, s Secret) {
		if n := len(s.Bytes()); !s.IsZero() && n != keyring.KeySize {
			r.Fault(at, "", setting.Problem{What: fmt.Sprintf("has %d bytes, but a key has %d", n, keyring.KeySize), Fix: "make one with: holdfast keys create FILE"})
		}
	}
	check("secrets.key", k.Key)
	for i, s := range k.Former {
		check(setting.Element(path, i), s)
	}
}

// Ring returns the keyring. A configuration without faults has no error.
func (k *Keyring) Ring() (*keyring.Ring, error) {
	former := make([][]byte, len(k.Former))
	for i, s := range k.Former {
		former[i] = s.Bytes()
	}
	return keyring.New(k.Key.Bytes(), former...)
}

// Equal reports whether two keyrings have the same keys, wherever they come from.
func (k *Keyring) Equal(other *Keyring) bool { return sameSecrets(*k, *other) }
