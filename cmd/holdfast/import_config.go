package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/opennotificaties"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// configuration returns what the configuration of the node must hold, in YAML, and writes the secrets that it
// names. Without a folder for them it names files that are to be made.
func (i *imports) configuration(file *opennotificaties.File) (string, error) {
	parts := setting.Mapping()
	clients := setting.Mapping()
	for _, c := range file.Clients {
		at, err := i.keep(c.ID, c.Secret)
		if err != nil {
			return "", err
		}
		own := setting.Mapping(setting.Pair{Key: "secret", Value: at})
		if file.Authorizations == nil { // it knows what they may do, and the file does not
			own.Content[0].HeadComment = "It may do nothing until you decide and write scopes: consumeren, publiceren, or both."
		}
		setting.Add(clients, c.ID, own)
	}
	if len(clients.Content) > 0 {
		setting.Add(parts, "clients", clients)
	}
	if s := file.Authorizations; s != nil {
		at, err := i.keep("autorisaties "+s.Client, s.Secret)
		if err != nil {
			return "", err
		}
		setting.Add(parts, "authority", setting.Mapping(
			setting.Pair{Key: "url", Value: setting.Str(s.URL)}, setting.Pair{Key: "client", Value: setting.Str(s.Client)}, setting.Pair{Key: "secret", Value: at},
		))
	}
	whole := setting.Mapping()
	if len(parts.Content) > 0 {
		setting.Add(whole, "notificaties", parts)
	}
	if len(whole.Content) == 0 {
		return "", nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(whole), enc.Close()); err != nil {
		return "", fmt.Errorf("write the configuration: %w", err)
	}
	return b.String(), nil
}

// keep writes a secret into a file of the folder, and returns how a configuration names that. A file that
// holds it already stays; one that holds something else is a fault.
func (i *imports) keep(name, secret string) (*yaml.Node, error) {
	path := url.PathEscape(name) + ".secret"
	if i.secrets != "" {
		folder, err := filepath.Abs(i.secrets)
		if err != nil {
			return nil, fmt.Errorf("find the folder of secrets: %w", err)
		}
		path = filepath.Join(folder, path)
	}
	at := setting.Flow(setting.Pair{Key: "file", Value: setting.Str(path)})
	if i.secrets == "" || i.dry {
		return at, nil
	}
	if err := os.MkdirAll(i.secrets, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of secrets: %w", err)
	}
	old, err := os.ReadFile(path) //nolint:gosec // the person who runs the program names the folder
	switch {
	case err == nil && string(old) == secret+"\n":
		return at, nil
	case err == nil:
		return nil, &codedError{fmt.Errorf("%s holds another secret: remove it, or name another folder", path), exitConflict}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read a secret: %w", err)
	}
	return at, writeKey(path, secret+"\n")
}
